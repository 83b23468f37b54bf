// The queues of the scheduler: guarantees, use and demand now, and over time.

import { make, queueLink, renew, table } from "../elements.js";
import { count } from "../format.js";
import { get, ofRecording } from "../net.js";
import { LENGTHS, since } from "./preemptions.js";
import { shares } from "./shares.js";

export function view({ main, query, again }) {
  const list = make("div");
  const pictures = make("div");
  const about = make("p", { class: "quiet" });
  let last = query.get("last") ?? "";
  const times = make("select", { "aria-label": "Times", change: (event) => {
    last = event.target.value;
    history.replaceState(null, "", ofRecording(`/queues${last ? `?last=${last}` : ""}`));
    again();
  } }, [["", "usual window"], ...LENGTHS].map(([value, words]) => make("option", { value }, words)));
  times.value = last;
  const more = { isWanted: false, show: () => { more.isWanted = true; again(); } };
  main.append(make("h1", {}, "Queues"), about, list, make("h2", {}, "Slots over time"), make("div", { class: "bar" }, times), pictures);
  return {
    title: "Queues",
    async refresh() {
      const [answer, session] = [await get("queues"), await get("session")];
      const queues = answer.queues ?? [];
      about.textContent = session.is_live ? `The scheduler is ${answer.scheduler}. Slots are shown as used of guaranteed; demand is shown beside them.` : "";
      const empty = session.is_live ? `The scheduler ${answer.scheduler} has no queues.` : "A history does not record the queues themselves, only the slots that their jobs held.";
      renew(list, table("Queues", columns(queues), queues, empty));
      renew(pictures, shares(await get(`shares${meant(last)}`), queues, more));
    },
  };
}

/** The query for a window; empty for the default of the server. */
function meant(last) {
  const length = LENGTHS.find(([name]) => name === last);
  if (!length) return "";
  return `?from=${length[2] === null ? 0 : since(length[2])}`;
}

/** Leaves out columns that have no value in any queue. */
function columns(queues) {
  const has = (value) => queues.some(value);
  const either = (value) => (queue) => value(queue.map) !== null || value(queue.reduce) !== null;
  return [
    ["Queue", (queue) => named(queue, queues), "text"],
    has((queue) => queue.weight !== null) && ["Weight", (queue) => (queue.weight === null ? "" : String(queue.weight)), "number"],
    ["Map slots", (queue) => held(queue.map, "map")],
    ["Reduce slots", (queue) => held(queue.reduce, "reduce")],
    has(either((slots) => slots.maximum)) && ["At most", (queue) => pair(queue.map.maximum, queue.reduce.maximum), "number"],
    ["Wanted", (queue) => pair(queue.map.wanted, queue.reduce.wanted), "number"],
    ["Jobs running", (queue) => count(queue.running), "number"],
    ["Jobs waiting", (queue) => count(queue.waiting), "number"],
    has((queue) => queue.remark !== null) && ["Remark", (queue) => queue.remark, "text"],
  ].filter(Boolean);
}

function pair(map, reduce) {
  const word = (slots) => (slots === null ? "–" : count(slots));
  return `${word(map)} + ${word(reduce)}`;
}

/** A queue below its parent. */
function named(queue, queues) {
  let depth = 0;
  for (let above = queue.parent; above !== null && depth < 9; above = queues.find((other) => other.queue === above)?.parent ?? null) depth += 1;
  return make("span", {}, "\u2003".repeat(depth), queueLink(queue.queue));
}

/** The used share of a guarantee; the bar is full at 100 %. */
export function held(slots, kind) {
  const guaranteed = slots.guaranteed;
  const words = guaranteed === null ? count(slots.used) : `${count(slots.used)} of ${guaranteed.toLocaleString("en-GB", { maximumFractionDigits: 1 })}`;
  const below = guaranteed !== null && slots.used + 1 <= guaranteed && slots.wanted > 0;
  const done = make("b");
  done.style.width = guaranteed ? `${Math.min(100, Math.round((slots.used / guaranteed) * 100))}%` : "0%";
  const bar = guaranteed ? make("i", { "aria-hidden": "true" }, done) : null;
  return make("span", { class: `progress ${kind}` }, bar, below ? `${words}, below its guarantee` : words);
}
