// The button and the dialog for an order of an operator.

import { make } from "./elements.js";
import { Problem, order } from "./net.js";

/** A button that asks for confirmation and a reason. `more` is sent beside the reason; `asksWhy` is false if the order takes none. */
export function orderButton({ label, title, about, path, more = {}, asksWhy = true, done, isBad }) {
  return make("button", { type: "button", class: isBad ? "bad" : null, click: () => ask({ label, title, about, path, more, asksWhy, done }) }, label);
}

function ask({ label, title, about, path, more, asksWhy, done }) {
  const reason = make("input", { type: "text", id: "reason", maxlength: "500", placeholder: "recorded in the history" });
  const message = make("p", { role: "alert" });
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
      message.textContent = [error.message, error.remedy].filter(Boolean).join("; ");
    }
  };
  const dialog = make("dialog", { "aria-label": title, cancel: close },
    make("form", { submit: send },
      make("h2", {}, title),
      make("p", {}, about),
      asksWhy && [make("label", { for: "reason" }, "Why?"), reason],
      message,
      make("div", { class: "bar" },
        make("button", { type: "submit" }, label),
        make("button", { type: "button", click: close }, "Cancel"))));
  document.body.append(dialog);
  dialog.showModal();
}
