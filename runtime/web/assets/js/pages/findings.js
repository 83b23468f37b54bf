// What makes or made a job slow, in the words of the server.

import { make, sentence } from "../elements.js";
import { remedy } from "./why.js";

/** The codes as headings. */
const WORDS = {
  "skew": "Skew", "hot-key": "Hot key", "straggler": "Straggler", "failing-worker": "Failing worker", "slow-worker": "Slow worker", "preempted": "Preempted",
  "small-files": "Small files", "waiting-for-maps": "Waiting for maps", "spills": "Spills",
};

/** A panel with the findings; nothing if there are none. */
export function findings(found) {
  if (found.length === 0) return [];
  return make("section", { class: "panel slow", "aria-label": "What makes it slow" }, make("ul", {}, found.map(finding)));
}

function finding({ code, text, remedy: advice }) {
  return make("li", {}, make("b", {}, WORDS[code] ?? code), make("div", {}, sentence(text), advice ? make("div", { class: "quiet" }, remedy(advice)) : []));
}
