// Slots of queues over time: held, suspended and wanted slots per step, next to the guarantee.

import { make, queueLink } from "../elements.js";
import { count, moment, utc } from "../format.js";

const SHOWN_MAX = 24;
const KINDS = [["map", "Map slots"], ["reduce", "Reduce slots"]];

/** A row for each queue, those that held most first. `queues` has the current guarantees; `more` shows the rest. */
export function shares(answer, queues, more) {
  if (answer.queues.length === 0) return [make("p", { class: "empty" }, "No jobs in this window.")];
  const now = new Map(queues.map((queue) => [queue.queue, queue]));
  const guarantee = (queue, kind) => now.get(queue.queue)?.[kind].guaranteed ?? null;
  const sum = (queue) => KINDS.flatMap(([kind]) => queue[kind].held).reduce((total, held) => total + held, 0);
  const sorted = [...answer.queues].sort((one, other) => sum(other) - sum(one));
  const shown = sorted.slice(0, more.isWanted ? sorted.length : SHOWN_MAX);
  // All queues share a scale per kind, so that they can be compared. Demand is left out: one large job would flatten everything else.
  const most = Object.fromEntries(KINDS.map(([kind]) => {
    const maximum = (queue) => now.get(queue.queue)?.[kind].maximum ?? 0;
    const tops = shown.flatMap((queue) => [guarantee(queue, kind) ?? 0, maximum(queue), queue[kind].held_most, ...queue[kind].guaranteed,
      ...queue[kind].held.map((held, at) => held + queue[kind].suspended[at])]);
    return [kind, Math.max(1, Math.ceil(Math.max(...tops)))];
  }));
  const rows = shown.map((queue) =>
    make("section", { class: "shares" },
      make("h3", {}, queueLink(queue.queue)),
      KINDS.map(([kind, words]) => chart(answer, queue[kind], { kind, words, most: most[kind], guaranteed: guarantee(queue, kind) }))));
  const left = [];
  const rest = sorted.length - shown.length;
  const showAll = rest > 0 && make("button", { type: "button", click: more.show }, `Show ${count(rest)} more that held less`);
  const any = (says) => shown.some((queue) => KINDS.some(([kind]) => says(queue, kind)));
  const signs = {
    isGuaranteed: any((queue, kind) => guarantee(queue, kind) !== null || queue[kind].guaranteed.some((slots) => slots !== null)),
    isWanted: any((queue, kind) => queue[kind].wanted.length > 0),
  };
  left.push(...answer.remarks);
  return [times(answer, signs), ...rows, showAll, left.length > 0 && make("p", { class: "under" }, left.join("; "))];
}

/** Held plus wanted slots, for the steps with data. */
function demand({ held, wanted }) {
  return wanted.map((slots, at) => (slots === null ? null : held[at] + slots));
}

/** The most slots held and wanted together; 0 without samples. */
function demandMost({ held_most: most, demand_most: wanted }) {
  return wanted === null ? 0 : Math.max(wanted, most);
}

function times(answer, { isGuaranteed, isWanted }) {
  const time = (millis) => make("time", { title: utc(millis) }, moment(millis));
  const sign = (name) => make("i", { class: `sign ${name}`, "aria-hidden": "true" });
  return make("p", { class: "under" }, make("span", {}, "From ", time(answer.from_millis), " to ", time(answer.until_millis)),
    make("span", {}, sign("held"), "held"), make("span", {}, sign("suspended"), "suspended, on top of it"),
    isWanted && make("span", {}, sign("wanted"), "wanted"),
    isGuaranteed && make("span", {}, sign("guaranteed"), "guaranteed"));
}

/** The steps from left to right, with a description for screen readers. */
function chart(answer, shares, { kind, words, most, guaranteed }) {
  const { held, suspended } = shares;
  const height = (element, slots) => {
    element.style.height = `${(slots / most) * 100}%`;
    return element;
  };
  const steps = runs(answer, held, suspended).map((run) => {
    const step = make("i", {}, run.held > 0 && height(make("b"), run.held), run.suspended > 0 && height(make("b", { class: "suspended" }), run.suspended));
    step.style.flexGrow = String(run.millis);
    return step;
  });
  // Steps add a mean of slots held to a sample of slots wanted, which may exceed every sample.
  const highest = demandMost(shares);
  const wanted = demand(shares).map((slots) => (slots === null ? null : Math.min(slots, highest, most)));
  const lines = [level(answer, wanted, most, "wanted")];
  const beyond = highest > most && make("span", { class: "beyond", "aria-hidden": "true" }, `${count(highest)} wanted at most`);
  // Steps without a record show the current guarantee.
  const isNoted = shares.guaranteed.some((slots) => slots !== null);
  if (isNoted) lines.push(level(answer, shares.guaranteed, most, "guaranteed"));
  else if (guaranteed !== null) lines.push(height(make("u"), guaranteed));
  const description = summary(words, shares, guaranteed, answer.jobs_left_out > 0);
  return make("figure", { class: kind },
    make("div", { class: "steps", role: "img", "aria-label": description, title: description }, steps, lines, make("span", { class: "most", "aria-hidden": "true" }, count(most)), beyond),
    make("figcaption", {}, description));
}

/** A line over the steps with a gap where there is no data. */
function level(answer, slots, most, name) {
  const count = slots.length;
  if (!slots.some((height) => height !== null)) return [];
  const points = [];
  slots.forEach((height, at) => {
    if (height === null) return;
    const y = (100 * (1 - height / most)).toFixed(2);
    const edge = (step) => ((100 * Math.min(answer.until_millis - answer.from_millis, step * answer.step_millis)) / (answer.until_millis - answer.from_millis)).toFixed(2);
    points.push(`${at === 0 || slots[at - 1] === null ? "M" : "L"}${edge(at)} ${y}H${edge(Math.min(count, at + 1))}`);
  });
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  drawn.setAttribute("class", name);
  drawn.setAttribute("viewBox", "0 0 100 100");
  drawn.setAttribute("preserveAspectRatio", "none");
  drawn.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", points.join(""));
  path.setAttribute("vector-effect", "non-scaling-stroke");
  drawn.append(path);
  return [drawn];
}

/** Merges equal steps. */
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

function summary(words, shares, guaranteed, isPart) {
  const { held, held_most: most, suspended_most: naps, demand_most: wanted } = shares;
  const form = (slots) => (slots > 0 && slots < 0.05 ? "under 0.1" : slots.toLocaleString("en-GB", { maximumFractionDigits: 1 }));
  const mean = held.reduce((total, slots) => total + slots, 0) / held.length;
  const used = most === 0 ? "none held" : `${isPart ? "at least " : ""}${form(mean)} held on average, ${count(most)} at most`;
  return [`${words}: ${used}`, naps > 0 && `${count(naps)} suspended at most`,
    wanted !== null && (demandMost(shares) === 0 ? "none wanted" : `${count(demandMost(shares))} wanted at most`),
    guaranteed !== null && `${form(guaranteed)} guaranteed`].filter(Boolean).join(", ");
}
