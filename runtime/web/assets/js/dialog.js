// A modal dialog with a form. Escape and Cancel close it; the browser returns the focus to where it was.

import { make } from "./elements.js";
import { Problem } from "./net.js";

/** Shows a dialog; returns what `send` returned, or null if it was cancelled. A problem is shown, and the form can be sent again. */
export function dialog({ title, label, inside, send, leave = "Cancel" }) {
  return new Promise((answer) => {
    const message = make("p", { role: "alert", class: "bad-words" });
    const submit = make("button", { type: "submit" }, label);
    const element = make("dialog", { "aria-label": title, close: () => close(null) },
      make("form", { submit: async (event) => {
        event.preventDefault();
        message.textContent = "";
        submit.disabled = true;
        try {
          const sent = await send();
          if (sent !== undefined) close(sent);
        } catch (error) {
          if (!(error instanceof Problem)) throw error;
          message.textContent = [error.message, error.remedy].filter(Boolean).join("; ");
        } finally {
          submit.disabled = false;
        }
      } },
      make("h2", {}, title),
      inside,
      message,
      make("div", { class: "bar" }, submit, make("button", { type: "button", click: () => close(null) }, leave))));
    function close(sent) {
      answer(sent);
      element.close();
      element.remove();
    }
    document.body.append(element);
    element.showModal();
  });
}
