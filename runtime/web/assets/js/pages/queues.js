// The queues of the scheduler: guarantees, use and demand now, and over time.

import { csvLink, make, queueLink, renew, table } from "../elements.js";
import { count } from "../format.js";
import { get, ofRecording } from "../net.js";
import { LENGTHS, since } from "./preemptions.js";
import { shares } from "./shares.js";

export function view({ main, query, again }) {
  const list = make("div");
  const pictures = make("div");
  const about = make("p", { class: "quiet" });
  let last = query.get("last") ?? "";
  const changed = () => {
    const params = new URLSearchParams(Object.entries({ last, sort: sorting.by }).filter(([, value]) => value));
    history.replaceState(null, "", ofRecording(`/queues${params.size ? `?${params}` : ""}`));
    again();
  };
  const sorting = {
    by: query.get("sort") ?? "",
    choose(field) {
      sorting.by = field;
      changed();
    },
  };
  const times = make("select", { "aria-label": "Times", change: (event) => {
    last = event.target.value;
    changed();
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
      renew(list, table("Queues", columns(queues), sorted(queues, sorting.by), empty, sorting), queues.length > 0 && make("p", { class: "under" }, csvLink("queues")));
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

/** The value of each field that the table can be sorted by. */
const SORTS = {
  queue: ({ queue }) => queue,
  weight: ({ weight }) => weight ?? -1,
  map: ({ map }) => map.used,
  reduce: ({ reduce }) => reduce.used,
  over: (queue) => over(queue),
  wanted: ({ map, reduce }) => map.wanted + reduce.wanted,
  running: ({ running }) => running,
  waiting: ({ waiting }) => waiting,
};

/** The queues in the order of a field, `-` for descending; without one, children follow their parents. */
function sorted(queues, by) {
  const value = SORTS[by.replace("-", "")];
  if (!value) return queues;
  const compared = (one, other) => (value(one) < value(other) ? -1 : value(one) > value(other) ? 1 : 0);
  return [...queues].sort(by.startsWith("-") ? (one, other) => compared(other, one) : compared);
}

/** Slots in use above the guarantee, of both kinds; 0 without a guarantee. */
function over(queue) {
  const above = ({ used, guaranteed }) => (guaranteed === null ? 0 : Math.max(0, used - guaranteed));
  return above(queue.map) + above(queue.reduce);
}

/** Leaves out columns that have no value in any queue. */
function columns(queues) {
  const has = (value) => queues.some(value);
  const either = (value) => (queue) => value(queue.map) !== null || value(queue.reduce) !== null;
  return [
    ["Queue", (queue) => named(queue, queues), "text", "queue"],
    has((queue) => queue.weight !== null) && ["Weight", (queue) => (queue.weight === null ? "" : String(queue.weight)), "number", "weight"],
    ["Map slots", (queue) => held(queue.map, "map"), null, "map"],
    ["Reduce slots", (queue) => held(queue.reduce, "reduce"), null, "reduce"],
    has(either((slots) => slots.guaranteed)) && ["Above its guarantee", (queue) => aboveWords(queue), "number", "over"],
    has(either((slots) => slots.maximum)) && ["At most", (queue) => pair(queue.map.maximum, queue.reduce.maximum), "number"],
    ["Wanted", (queue) => pair(queue.map.wanted, queue.reduce.wanted), "number", "wanted"],
    ["Jobs running", (queue) => count(queue.running), "number", "running"],
    ["Jobs waiting", (queue) => count(queue.waiting), "number", "waiting"],
    has((queue) => queue.remark !== null) && ["Remark", (queue) => queue.remark, "text"],
  ].filter(Boolean);
}

/** How far a queue is above its guarantee, marked. */
function aboveWords(queue) {
  const slots = over(queue);
  return slots === 0 ? "–" : make("span", { class: "over" }, `+${slots.toLocaleString("en-GB", { maximumFractionDigits: 1 })}`);
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
