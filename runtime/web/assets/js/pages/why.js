// Why a job or task makes no progress, in the words of the server.

import { make, sentence } from "../elements.js";

/** A panel with the reasons, the most important first; empty without any. */
export function why(reasons) {
  if (reasons.length === 0) return [];
  return make("section", { class: "panel why", "aria-label": "Why it waits" }, reasons.map(reason));
}

/** The reason stands out; commands in a remedy are set off for copying. */
function reason({ code, text, is_why: isWhy }) {
  const [before, command] = code === "remedy" ? text.split(/(?<=: )(?=nap )/) : [text];
  return make("p", { class: isWhy ? "why" : "quiet", title: code }, sentence(before), command ? make("code", {}, command) : []);
}
