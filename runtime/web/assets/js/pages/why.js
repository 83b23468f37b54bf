// Why something does not get on, in the server's words.
// Owns how these look. Does not own what is asked about (job, task).

import { make, sentence } from "../elements.js";

/** A panel with reasons, the most telling first; nothing if there are none. */
export function why(reasons) {
  if (reasons.length === 0) return [];
  return make("section", { class: "panel why", "aria-label": "Why it is where it is" }, reasons.map(reason));
}

/** What says why stands out; a command can be copied from what says what to do. */
function reason({ code, text, is_why: isWhy }) {
  const [before, command] = code === "remedy" ? text.split(/(?<=: )(?=nap )/) : [text];
  return make("p", { class: isWhy ? "why" : "quiet", title: code }, sentence(before), command ? make("code", {}, command) : []);
}
