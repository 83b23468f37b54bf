// Orders of an operator: a button, a question, a reason.
// Owns the dialog. Does not own what is ordered (pages).

import { make } from "./elements.js";
import { Problem, order } from "./net.js";

/** A button that asks before it orders. Without `body` a reason is asked for. */
export function orderButton({ label, title, about, path, body, done, isBad }) {
  return make("button", { type: "button", class: isBad ? "bad" : null, click: () => ask({ label, title, about, path, body, done }) }, label);
}

function ask({ label, title, about, path, body, done }) {
  const reason = make("input", { type: "text", id: "reason", maxlength: "500", placeholder: "recorded in the history" });
  const said = make("p", { role: "alert" });
  const close = () => {
    dialog.close();
    dialog.remove();
  };
  const send = async (event) => {
    event.preventDefault();
    try {
      await order(path, body ? body() : { reason: reason.value || null });
      close();
      done();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      said.textContent = [error.message, error.remedy].filter(Boolean).join("; ");
    }
  };
  const dialog = make("dialog", { "aria-label": title, cancel: close },
    make("form", { submit: send },
      make("h2", {}, title),
      make("p", {}, about),
      !body && [make("label", { for: "reason" }, "Why?"), reason],
      said,
      make("div", { class: "bar" },
        make("button", { type: "submit" }, label),
        make("button", { type: "button", click: close }, "Cancel"))));
  document.body.append(dialog);
  dialog.showModal();
}
