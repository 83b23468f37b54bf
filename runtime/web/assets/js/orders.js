// Orders of an operator: a button, a question, a reason.
// Owns the dialog. Does not own what is ordered (pages).

import { make } from "./elements.js";
import { Problem, order } from "./net.js";

/** A button that asks before it orders. `more` is sent beside the reason; `asksWhy` is false where there is none to be given. */
export function orderButton({ label, title, about, path, more = {}, asksWhy = true, done, isBad }) {
  return make("button", { type: "button", class: isBad ? "bad" : null, click: () => ask({ label, title, about, path, more, asksWhy, done }) }, label);
}

function ask({ label, title, about, path, more, asksWhy, done }) {
  const reason = make("input", { type: "text", id: "reason", maxlength: "500", placeholder: "recorded in the history" });
  const said = make("p", { role: "alert" });
  const close = () => {
    dialog.close();
    dialog.remove();
  };
  const send = async (event) => {
    event.preventDefault();
    try {
      await order(path, asksWhy ? { ...more, reason: reason.value || null } : more);
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
      asksWhy && [make("label", { for: "reason" }, "Why?"), reason],
      said,
      make("div", { class: "bar" },
        make("button", { type: "submit" }, label),
        make("button", { type: "button", click: close }, "Cancel"))));
  document.body.append(dialog);
  dialog.showModal();
}
