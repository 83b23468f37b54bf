// The button and the dialog for an order of an operator, and the words in their place.

import { dialog } from "./dialog.js";
import { make } from "./elements.js";
import { order } from "./net.js";

/**
 * A button that asks for confirmation and a reason. `more` is sent beside the reason; `asksWhy` is false if the order takes none.
 * `form` makes further fields when the dialog opens: `{ fields, values }`. `done` gets the answer.
 */
export function orderButton({ label, title, about, path, more = {}, form = () => ({}), asksWhy = true, done, isBad }) {
  const click = async (event) => {
    const place = event.currentTarget.parentElement;
    const reason = make("input", { type: "text", id: "reason", maxlength: "500", placeholder: "recorded in the history" });
    const { fields = [], values = () => more } = form();
    const inside = [make("p", {}, about), fields, asksWhy && [make("label", { for: "reason" }, "Why?"), reason]];
    const send = async () => order(path, asksWhy ? { ...values(), reason: reason.value || null } : values());
    const answer = await dialog({ title, label, inside, send });
    if (answer === null) return;
    await done(answer);
    // The order may have replaced its button.
    if (document.activeElement === document.body) place.querySelector("button")?.focus();
  };
  return make("button", { type: "button", class: isBad ? "bad" : null, click }, label);
}

/** Says in the place of the buttons why there are none. */
export function withoutOrders() {
  return make("p", { class: "quiet" }, "This tab can only view. For orders, open in it a link that this command prints: ", make("code", {}, "nap web link"));
}
