// The tasks of a job, its attempts, and the quantiles of those that were done.

import { make, sentence, state, table } from "../elements.js";
import { bytes, count, moment, span, taken, utc } from "../format.js";
import { get, mayOrder } from "../net.js";
import { orderButton } from "../orders.js";
import { logButton } from "./logs.js";

export function tasks(items, job, { again, sorting, isFiltered }) {
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
  if (task.state === "succeeded" || task.state === "waiting") return "";
  if (task.state === "suspended" || task.state === "checkpointed") {
    return button("Resume", "resume", "It continues where it was, as soon as a slot is free for it.");
  }
  return [
    button("Suspend", "suspend", "Its process is stopped where it is, and its slot is released."),
    button("Checkpoint", "checkpoint", "Its work is saved in files; it continues from there, here or on another worker."),
    button("Kill", "kill", "Its work is lost and done again. This does not count as a failure.", true),
  ];
}

const FIGURES = [["Took", "took_millis", span], ["Read", "input_bytes", bytes], ["Records read", "input_records", count], ["Wrote", "output_bytes", bytes],
  ["Waited for maps", "shuffle_millis", span], ["Processor", "processor_millis", span]];

/** Quantiles of successful attempts: an attempt far above the median is slow or has more data. */
export async function quantiles(id) {
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
    ["End", (item) => (item.end ? (item.end === "done" ? state("done") : sentence(item.end)) : state("running")), "text"],
    ["Logs", (item) => [logButton(item.attempt, "stdout"), logButton(item.attempt, "stderr")], "id"],
  ], items, isFiltered ? "No matching attempts." : job.ended_millis === null ? "No attempt was launched yet." : "No attempt was launched.", sorting);
}

/** Whether an attempt is still running; none is in a job that has ended. */
function goesOn(attempt, job) {
  return attempt.ended_millis === null && job.ended_millis === null;
}
