// The tabs of a job: timeline, tasks, preemptions, counters, settings, attempts with logs, events.

import { link, make, renew, sentence, state, table } from "../elements.js";
import { bytes, count, moment, short, span, taken, utc } from "../format.js";
import { get, mayOrder, ofRecording } from "../net.js";
import { orderButton } from "../orders.js";
import { getTimeline } from "../timeline/columns.js";
import { Timeline } from "../timeline/timeline.js";
import { under } from "./jobs.js";
import { logButton } from "./logs.js";
import { settings } from "./settings.js";

const STEP = 100;
const LIMIT_MAX = 10_000;

/**
 * A tab with a paged list; `filtered` names the fields that its search covers, and `above` shows a summary of the whole list.
 */
function list(path, show, filtered, above) {
  return ({ id, place, query, again }) => {
    let limit = STEP;
    let wanted = query.get("text") ?? "";
    const sorting = {
      by: query.get("sort") ?? "",
      choose(field) {
        sorting.by = field;
        const params = new URLSearchParams(Object.entries({ text: wanted, sort: field }).filter(([, value]) => value));
        history.replaceState(null, "", ofRecording(`${location.pathname}${params.size ? `?${params}` : ""}`));
        again();
      },
    };
    const more = () => {
      limit = Math.min(limit * 10, LIMIT_MAX);
      again();
    };
    const search = filtered && make("input", { type: "search", placeholder: filtered, "aria-label": "Filter", value: wanted,
      input: (event) => { wanted = event.target.value.trim(); again(); } });
    const rows = make("div");
    place.append(...(search ? [make("div", { class: "bar" }, search)] : []), rows);
    return {
      async refresh(job) {
        const asked = new URLSearchParams({ limit });
        if (sorting.by) asked.set("sort", sorting.by);
        if (filtered && wanted) asked.set("text", wanted);
        const page = await get(`jobs/${id}/${path}?${asked}`);
        renew(rows, above ? await above(id) : [], show(page.items, job, { again, sorting, isFiltered: asked.has("text") }), under(page, more));
      },
    };
  };
}

function timeline({ id, place, again }) {
  const address = (window) => {
    const asked = new URLSearchParams({ ...(picture.byTask ? {} : { neighbours: true }), ...window });
    return `jobs/${id}/timeline${asked.size ? `?${asked}` : ""}`;
  };
  const closer = (from, until) => getTimeline(address({ from, until }), { isKept: false });
  const picture = new Timeline({ label: `The life of ${id}`, byTask: true, own: Number(id.slice(4)), swapped: again, closer });
  place.append(picture.element, make("p", { class: "under" },
    make("a", { href: ofRecording(`/api/nap/v1/jobs/${id}/trace.json`), download: `${id}.trace.json` }, "Save a trace for Perfetto"), " · ",
    make("a", { href: ofRecording(`/api/nap/v1/jobs/${id}/report.html`), download: `${id}.html` }, "Save a report"), " · ", link(`/compare?left=${id}`, "Compare with another job")));
  return {
    leave: () => picture.leave(),
    repaint: () => picture.draw(),
    refresh: async () => picture.show(await getTimeline(address({}))),
  };
}

function tasks(items, job, { again, sorting, isFiltered }) {
  const isOpen = job.ended_millis === null;
  const columns = [
    ["Task", (task) => sentence(task.task), "id", "task"],
    ["State", (task) => state(task.state), null, "state"],
    ["Tries", (task) => String(task.attempts), "number", "attempts"],
    ["Attempt", (task) => task.live.map((live) => make("div", {}, live.attempt)), "id"],
    ["Worker", (task) => task.live.map((live) => make("div", {}, sentence(live.worker))), "id"],
    ["Doing", (task) => task.live.map((live) => make("div", {}, live.state))],
    ["Done", (task) => task.live.map((live) => make("div", {}, live.bytes_total ? `${Math.floor((100 * live.bytes_done) / live.bytes_total)} %` : "")), "number", "progress"],
    ["Why", (task) => sentence(task.live.map((live) => live.reason).find(Boolean) ?? task.reason ?? ""), "text"],
  ];
  if (mayOrder() && isOpen) columns.push(["", (task) => taskOrders(task, again), "id"]);
  return table(columns, items, isFiltered ? "No matching tasks." : isOpen ? "The job has no tasks yet." : "No task was started.", sorting);
}

/** The orders that a task accepts in its state. */
export function taskOrders(task, done) {
  const button = (label, word, about, isBad) =>
    orderButton({ label, title: `${label} ${task.task}?`, about, path: `tasks/${task.task}/${word}`, done, isBad });
  if (task.state === "done" || task.state === "pending") return "";
  if (task.state === "suspended" || task.state === "checkpointed") {
    return button("Resume", "resume", "It continues where it was, as soon as a slot is free for it.");
  }
  return [
    button("Suspend", "suspend", "Its process is stopped where it is, and its slot is released."),
    button("Checkpoint", "checkpoint", "Its work is saved in files; it continues from there, here or on another worker."),
    button("Kill", "kill", "Its work is lost and done again. This does not count as a failure.", true),
  ];
}

function preemptions(items) {
  return ledger(items, "No slot of this job was taken.");
}

/** Totals of all preemptions of a job, regardless of the page. */
async function preemptionTotals(id) {
  const totals = await get(`jobs/${id}/preemptions/totals`);
  if (totals.count === 0) return [];
  const often = totals.count === 1 ? "Once" : `${count(totals.count)} times`;
  return make("p", {}, `${often} a slot was wanted back; ${span(totals.work_saved_millis)} of work was saved, ${span(totals.work_lost_millis)} lost.`);
}

/** Entries of the ledger, with links to victims and beneficiaries. */
export function ledger(items, empty) {
  return table([
    ["When", (item) => make("time", { title: utc(item.requested_micros / 1000) }, moment(item.requested_micros / 1000)), "id"],
    ["Victim", (item) => sentence(item.attempt), "id"],
    ["On", (item) => sentence(item.worker), "id"],
    ["For", (item) => (item.beneficiary ? sentence(item.beneficiary) : "–"), "id"],
    ["How", (item) => (item.asked === item.primitive ? item.primitive : `${item.primitive} (asked: ${item.asked})`)],
    ["By", (item) => item.by],
    ["Why", (item) => sentence(item.reason), "text"],
    ["End", (item) => (item.end ? state(item.end) : "…")],
    ["Slot free after", (item) => (item.freed_micros === null ? "–" : short(item.freed_micros - item.requested_micros)), "number"],
    ["Slot went to", (item) => (item.used_by ? sentence(item.used_by) : "–"), "id"],
    ["Work then", (item) => item.given_back ?? "–"],
    ["Slept", (item) => (isAsleep(item) ? taken(item.freed_micros / 1000, null) : span(item.suspended_millis)), "number"],
    ["In memory", (item) => (item.resident_bytes ? bytes(item.resident_bytes) : "–"), "number"],
    ["In files", (item) => (item.checkpoint_bytes ? bytes(item.checkpoint_bytes) : "–"), "number"],
    ["Saved", (item) => span(item.work_saved_millis), "number"],
    ["Lost", (item) => span(item.work_lost_millis), "number"],
  ], items, empty);
}

function isAsleep({ end, given_back: work, suspended_millis: slept }) {
  return slept === null && end === "suspended" && work === "waiting";
}

function counters({ id, place }) {
  return {
    async refresh() {
      const { counters: all } = await get(`jobs/${id}/counters`);
      const rows = Object.entries(all);
      renew(place, table([["Counter", ([name]) => name, "text"], ["Value", ([, value]) => count(value), "number"]], rows, "No counters yet."));
    },
  };
}

const FIGURES = [["Took", "took_millis", span], ["Read", "input_bytes", bytes], ["Records read", "input_records", count], ["Wrote", "output_bytes", bytes],
  ["Waited for maps", "shuffle_millis", span], ["Processor", "processor_millis", span]];

/** Quantiles of successful attempts: an attempt far above the median is slow or has more data. */
async function quantiles(id) {
  const answer = await get(`jobs/${id}/quantiles`);
  const words = { 0: "Least", 50: "Median", 100: "Most" };
  return [["map", "maps"], ["reduce", "reduces"]].filter(([kind]) => answer[kind]?.attempts > 1).map(([kind, plural]) => {
    const phase = answer[kind];
    const known = FIGURES.filter(([, name]) => phase[name].at(-1) > 0);
    return make("details", { open: true }, make("summary", {}, `${count(phase.attempts)} ${plural} that were done`),
      table([["", ([label]) => label, "id"], ...answer.percents.map((percent, at) => [words[percent] ?? `${percent} %`, ([, name, form]) => form(phase[name][at]), "number"])], known, ""));
  });
}

/** Bytes of a successful attempt, with its records in the tooltip. */
function moved(size, records) {
  return size === null ? "" : make("span", { title: `${count(records)} records` }, bytes(size));
}

/** A list of attempts with buttons for their logs. */
export function attempts(items, job, { sorting, isFiltered } = {}) {
  return table([
    ["Attempt", (item) => sentence(item.attempt), "id", "attempt"],
    ["Worker", (item) => sentence(`${item.worker} (${item.worker_name})`), "id", "worker"],
    ["Launched", (item) => make("time", { title: utc(item.launched_millis) }, moment(item.launched_millis)), "id", "launched"],
    ["Took", (item) => (goesOn(item, job) ? taken(item.launched_millis, null) : item.ended_millis === null ? "" : taken(item.launched_millis, item.ended_millis)), "number", "took"],
    ["Read", (item) => moved(item.input_bytes, item.input_records), "number", "read"],
    ["Wrote", (item) => moved(item.output_bytes, item.output_records), "number", "wrote"],
    ["Waited for maps", (item) => (item.shuffle_millis ? span(item.shuffle_millis) : ""), "number", "shuffle"],
    ["Processor", (item) => (item.processor_millis === null ? "" : span(item.processor_millis)), "number", "processor"],
    ["End", (item) => (item.end ? (item.end === "done" ? state("done") : sentence(item.end)) : state("active")), "text"],
    ["Logs", (item) => [logButton(item.attempt, "stdout"), logButton(item.attempt, "stderr")], "id"],
  ], items, isFiltered ? "No matching attempts." : job.ended_millis === null ? "No attempt was launched yet." : "No attempt was launched.", sorting);
}

/** Whether an attempt is still running; none is in a job that has ended. */
function goesOn(attempt, job) {
  return attempt.ended_millis === null && job.ended_millis === null;
}

function events(items) {
  return table([
    ["When", (item) => make("time", { title: utc(item.at_millis) }, moment(item.at_millis)), "id"],
    ["What", (item) => sentence(item.text), "text"],
  ], items, "No events yet.");
}

/** The tabs in order: name in the address, label, and constructor. */
export const TABS = [
  ["timeline", { label: "Timeline", make: timeline }],
  ["tasks", { label: "Tasks", make: list("tasks", tasks, "ID, state, worker or why") }],
  ["preemptions", { label: "Preemptions", make: list("preemptions", preemptions, null, preemptionTotals) }],
  ["counters", { label: "Counters", make: counters }],
  ["settings", { label: "Settings", make: settings }],
  ["attempts", { label: "Attempts and logs", make: list("attempts", attempts, "ID, worker or end", quantiles) }],
  ["events", { label: "Events", make: list("events", events) }],
];
