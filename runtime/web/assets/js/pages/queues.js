// The queues of the scheduler: what each is guaranteed, has and wants, and how far it is from its guarantee; and what each had over time.
// Owns the list, its bars and which times are meant. Does not own jobs (jobs) nor pictures of times (shares).

import { link, make, renew, table } from "../elements.js";
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
  } }, [["", "the usual times"], ...LENGTHS].map(([value, words]) => make("option", { value }, words)));
  times.value = last;
  const more = { isWanted: false, show: () => { more.isWanted = true; again(); } };
  main.append(make("h1", {}, "Queues"), about, list, make("h2", {}, "Slots over time"), make("div", { class: "bar" }, times), pictures);
  return {
    title: "Queues",
    async refresh() {
      const [answer, session] = [await get("queues"), await get("session")];
      const queues = answer.queues ?? [];
      about.textContent = session.is_live ? `The scheduler in force is ${answer.scheduler}. Slots are in use of those guaranteed; more are wanted.` : "";
      const empty = session.is_live ? `The scheduler ${answer.scheduler} has no queues: it orders jobs by other things.` : "A history knows no queues as they were, but what their jobs held.";
      renew(list, table(columns(queues), queues, empty));
      renew(pictures, shares(await get(`shares${meant(last)}`), queues, more));
    },
  };
}

/** Without a word, what the server thinks of. */
function meant(last) {
  const length = LENGTHS.find(([name]) => name === last);
  if (!length) return "";
  return `?from=${length[2] === null ? 0 : since(length[2])}`;
}

/** Without those in which no queue says anything. */
function columns(queues) {
  const has = (said) => queues.some(said);
  const either = (said) => (queue) => said(queue.map) !== null || said(queue.reduce) !== null;
  return [
    ["Queue", (queue) => named(queue, queues), "text"],
    has((queue) => queue.weight !== null) && ["Weight", (queue) => (queue.weight === null ? "" : String(queue.weight)), "number"],
    ["Map slots", (queue) => held(queue.map, "map")],
    ["Reduce slots", (queue) => held(queue.reduce, "reduce")],
    has(either((slots) => slots.maximum)) && ["At most", (queue) => pair(queue.map.maximum, queue.reduce.maximum), "number"],
    ["Wanted", (queue) => pair(queue.map.wanted, queue.reduce.wanted), "number"],
    ["Jobs running", (queue) => count(queue.running), "number"],
    ["Jobs waiting", (queue) => count(queue.waiting), "number"],
    has((queue) => queue.remark !== null) && ["", (queue) => queue.remark, "text"],
  ].filter(Boolean);
}

function pair(map, reduce) {
  const word = (slots) => (slots === null ? "–" : count(slots));
  return `${word(map)} + ${word(reduce)}`;
}

/** A queue stands under the one that it is part of; its jobs are a click away. */
function named(queue, queues) {
  let depth = 0;
  for (let above = queue.parent; above !== null && depth < 9; above = queues.find((other) => other.queue === above)?.parent ?? null) depth += 1;
  const anchor = link(`/jobs?queue=${encodeURIComponent(queue.queue)}`, queue.queue);
  return make("span", {}, "\u2003".repeat(depth), anchor);
}

/** How much of its guarantee a queue has; more than that is a full bar. */
function held(slots, kind) {
  const guaranteed = slots.guaranteed;
  const words = guaranteed === null ? count(slots.used) : `${count(slots.used)} of ${guaranteed.toLocaleString("en-GB", { maximumFractionDigits: 1 })}`;
  const below = guaranteed !== null && slots.used + 1 <= guaranteed && slots.wanted > 0;
  const done = make("b");
  done.style.width = guaranteed ? `${Math.min(100, Math.round((slots.used / guaranteed) * 100))}%` : "0%";
  const bar = guaranteed ? make("i", { "aria-hidden": "true" }, done) : null;
  return make("span", { class: `progress ${kind}` }, bar, below ? `${words}, below its guarantee` : words);
}
