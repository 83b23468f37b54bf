// Slots of queues over time: what the jobs of each held in each step, and what was suspended, against what it is guaranteed now.
// Owns these pictures. Does not own the list of queues (queues).

import { link, make } from "../elements.js";
import { count, moment, utc } from "../format.js";

const SHOWN_MAX = 24;
const KINDS = [["map", "Map slots"], ["reduce", "Reduce slots"]];

/** A row for each queue: those that held the most first. `queues` are as they are now, with their guarantees. */
export function shares(answer, queues) {
  if (answer.queues.length === 0) return [make("p", { class: "empty" }, "No job was there in these times.")];
  const now = new Map(queues.map((queue) => [queue.queue, queue]));
  const guarantee = (queue, kind) => now.get(queue.queue)?.[kind].guaranteed ?? null;
  const sum = (queue) => KINDS.flatMap(([kind]) => queue[kind].held).reduce((total, held) => total + held, 0);
  const sorted = [...answer.queues].sort((one, other) => sum(other) - sum(one));
  const shown = sorted.slice(0, SHOWN_MAX);
  // One scale for each kind, so that queues can be compared.
  const most = Object.fromEntries(KINDS.map(([kind]) => {
    const tops = shown.flatMap((queue) => [guarantee(queue, kind) ?? 0, ...queue[kind].held.map((held, at) => held + queue[kind].suspended[at])]);
    return [kind, Math.max(1, Math.ceil(Math.max(...tops)))];
  }));
  const rows = shown.map((queue) =>
    make("section", { class: "shares" },
      make("h3", {}, link(`/jobs?queue=${encodeURIComponent(queue.queue)}`, queue.queue)),
      KINDS.map(([kind, words]) => chart(answer, queue[kind], { kind, words, most: most[kind], guaranteed: guarantee(queue, kind) }))));
  const left = [];
  if (sorted.length > shown.length) left.push(`${count(sorted.length - shown.length)} queues that held less are not shown`);
  if (answer.jobs_left_out) left.push(`${count(answer.jobs_left_out)} older jobs of these times are not counted`);
  const isGuaranteed = shown.some((queue) => KINDS.some(([kind]) => guarantee(queue, kind) !== null));
  return [times(answer, isGuaranteed), ...rows, left.length > 0 && make("p", { class: "under" }, left.join("; "))];
}

function times(answer, isGuaranteed) {
  const time = (millis) => make("time", { title: utc(millis) }, moment(millis));
  const sign = (name) => make("i", { class: `sign ${name}`, "aria-hidden": "true" });
  return make("p", { class: "under" }, make("span", {}, "From ", time(answer.from_millis), " to ", time(answer.until_millis)),
    make("span", {}, sign("held"), "held"), make("span", {}, sign("suspended"), "suspended, on top of it"),
    isGuaranteed && make("span", {}, sign("guaranteed"), "guaranteed, as it is now"));
}

/** Steps from left to right; its words say what a picture cannot be asked for. */
function chart(answer, { held, suspended }, { kind, words, most, guaranteed }) {
  const height = (element, slots) => {
    element.style.height = `${(slots / most) * 100}%`;
    return element;
  };
  const steps = runs(answer, held, suspended).map((run) => {
    const step = make("i", {}, run.held > 0 && height(make("b"), run.held), run.suspended > 0 && height(make("b", { class: "suspended" }), run.suspended));
    step.style.flexGrow = String(run.millis);
    return step;
  });
  const line = guaranteed === null ? null : height(make("u"), guaranteed);
  const said = summary(words, held, suspended, guaranteed);
  return make("figure", { class: kind },
    make("div", { class: "steps", role: "img", "aria-label": said, title: said }, steps, line, make("span", { class: "most", "aria-hidden": "true" }, count(most))),
    make("figcaption", {}, said));
}

/** Steps in which nothing changes are one. */
function runs(answer, held, suspended) {
  const found = [];
  held.forEach((slots, at) => {
    const from = answer.from_millis + at * answer.step_millis;
    const millis = Math.min(answer.step_millis, answer.until_millis - from);
    const last = found.at(-1);
    if (last && last.held === slots && last.suspended === suspended[at]) last.millis += millis;
    else found.push({ held: slots, suspended: suspended[at], millis });
  });
  return found;
}

function summary(words, held, suspended, guaranteed) {
  const form = (slots) => (slots > 0 && slots < 0.05 ? "under 0.1" : slots.toLocaleString("en-GB", { maximumFractionDigits: 1 }));
  const mean = held.reduce((total, slots) => total + slots, 0) / held.length;
  const naps = Math.max(...suspended);
  return [`${words}: ${form(mean)} held in the mean, ${form(Math.max(...held))} at most`, naps > 0 && `${form(naps)} suspended at most`,
    guaranteed !== null && `${form(guaranteed)} guaranteed`].filter(Boolean).join(", ");
}
