// Why a job or task makes no progress, in the words of the server.

import { make, sentence } from "../elements.js";

/** A panel with the reasons, the most important first; empty without any. */
export function why(reasons) {
  if (reasons.length === 0) return [];
  return make("section", { class: "panel why", "aria-label": "Why it waits" }, reasons.map(reason));
}

/** The reason stands out. */
function reason({ code, text, is_why: isWhy }) {
  return make("p", { class: isWhy ? "why" : "quiet", title: code }, code === "remedy" ? remedy(text) : sentence(text));
}

/** A remedy, with its command set off for copying. */
export function remedy(text) {
  const [before, command] = text.split(/(?<=: )(?=nap )/);
  return [sentence(before), command ? make("code", {}, command) : []];
}
