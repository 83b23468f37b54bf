// The tasks of a job: one row each, which opens to its attempts, and the quantiles of those that succeeded.

import { make, renew, sentence, state, table, withValues } from "../elements.js";
import { bytes, count, moment, span, taken, utc } from "../format.js";
import { get, mayOrder } from "../net.js";
import { orderButton } from "../orders.js";
import { logButton } from "./logs.js";
import { list } from "./paged.js";

/** Filters of the server. */
const CHIPS = [
  { name: "", label: "All", asked: {}, count: "all" },
  { name: "running", label: "Running", asked: { state: "running" }, count: "running" },
  { name: "failed", label: "With failures", asked: { failed: true }, count: "failed" },
  { name: "slow", label: "Slow", asked: { slow: true }, count: "slow" },
];
/** A bar is full at this many times the median. */
const BAR_MAX = 3;

/** The tab. */
export function tasks(context) {
  const open = new Set();
  const above = summary(context.id);
  context.place.append(above.element);
  const show = (items, job, { again, sorting, isFiltered, page }) => {
    above.show(page.median_millis);
    return rows(items, job, { again, sorting, isFiltered, open, medians: page.median_millis });
  };
  const tab = list("tasks", show, "ID, state, worker, why or end", null, CHIPS)(context);
  return { refresh: (job) => Promise.all([tab.refresh(job), above.refresh()]) };
}

function rows(items, job, { again, sorting, isFiltered, open, medians }) {
  const isOpen = job.ended_millis === null;
  const size = (name) => (task) => (task[name] === null ? "" : bytes(task[name]));
  const columns = withValues([
    ["Task", (task) => make("span", { class: "row" }, disclosure(task, open, again), sentence(task.task)), "id", "task"],
    ["State", (task) => stateOf(task), "text", "state"],
    ["Tries", (task) => String(task.attempts), "number", "attempts"],
    ["Worker", (task) => (task.worker ? sentence(`${task.worker} (${task.worker_name})`) : ""), "id", "worker"],
    ["Took", (task) => took(task, medians), "number", "took"],
    ["Read", size("input_bytes"), "number", "read"],
    ["Wrote", size("output_bytes"), "number", "wrote"],
    ["Records", (task) => (task.input_records === null ? "" : count(task.input_records)), "number", "records"],
    ["Waited", (task) => (task.shuffle_millis ? span(task.shuffle_millis) : ""), "number", "shuffle"],
    ["Peak memory", size("peak_memory_bytes"), "number", "memory"],
    ["Naps", (task) => (task.naps ? count(task.naps) : ""), "number", "naps"],
    ["Logs", (task) => logs(task), "id"],
  ], items, sorting.by);
  if (mayOrder() && isOpen) columns.push(["Orders", (task) => taskOrders(task, again), "id"]);
  const below = (task) => open.has(task.task) && make("tr", { class: "below" },
    make("td", { colspan: String(columns.length) }, attempts(task.all_attempts, job, `Attempts of ${task.task}`)));
  return table("Tasks", columns, items, isFiltered ? "No matching tasks." : isOpen ? "The job has no tasks yet." : "No task was started.", sorting, below);
}

/** The button that shows the attempts of a task. */
function disclosure(task, open, again) {
  const toggle = ({ currentTarget: button }) => {
    if (!open.delete(task.task)) open.add(task.task);
    // Changed here, so that the next refresh keeps the button with the focus.
    button.setAttribute("aria-expanded", String(open.has(task.task)));
    again();
  };
  return make("button", { type: "button", class: "plain disclosure", "aria-expanded": String(open.has(task.task)), "aria-label": `Attempts of ${task.task}`,
    disabled: task.all_attempts.length === 0, click: toggle }, make("span", { "aria-hidden": "true" }, "▸"));
}

/** The state, how much is done, what its attempts do if that differs, and why. */
function stateOf(task) {
  const [first] = task.live;
  const done = first?.bytes_total ? `${Math.floor((100 * first.bytes_done) / first.bytes_total)} %` : null;
  const doing = task.live.map((live) => live.state).filter((word) => word !== task.state);
  const why = task.live.map((live) => live.reason).find(Boolean) ?? task.reason;
  const words = [done, ...doing].filter(Boolean).join(", ");
  return [make("span", { class: "id" }, state(task.state), words && make("span", { class: "quiet" }, ` ${words}`)), why && make("div", { class: "quiet" }, sentence(why))];
}

/** The time that a task took, as a bar with a mark at the median of its kind. */
function took(task, medians) {
  if (task.took_millis === null) return "";
  const median = medians[/_m_\d+$/.test(task.task) ? "map" : "reduce"];
  const times = median ? task.took_millis / median : null;
  const bar = make("b");
  bar.style.width = `${Math.min(100, (100 * (times ?? 0)) / BAR_MAX)}%`;
  return make("span", { class: `took${task.is_slow ? " slow" : ""}`, title: times ? `${times.toFixed(1)} times the median of ${span(median)}` : null },
    task.is_slow ? make("em", {}, `${Math.round(times)}×`) : [], times ? make("i", { "aria-hidden": "true" }, bar) : [], span(task.took_millis));
}

/** The logs of the attempt whose figures the row shows. */
function logs({ all_attempts: all }) {
  const main = all.find(({ outcome }) => outcome === "succeeded") ?? all.find(({ end }) => end === null) ?? all.at(-1);
  return main ? [logButton(main.attempt, "stdout"), logButton(main.attempt, "stderr")] : "";
}

/** The orders that a task accepts in its state. */
export function taskOrders(task, done) {
  const button = (label, word, about, isBad) =>
    orderButton({ label, title: `${label} ${task.task}?`, about, path: `tasks/${task.task}/${word}`, done, isBad });
  if (["waiting", "succeeded", "failed", "killed"].includes(task.state)) return "";
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

/** The medians in a line, which opens to all quantiles. */
function summary(id) {
  const line = make("summary", {});
  const place = make("div");
  const element = make("details", { hidden: true, toggle: () => refresh() }, line, place);
  const refresh = async () => element.open && renew(place, quantiles(await get(`jobs/${id}/quantiles`)));
  return {
    element,
    refresh,
    show({ map, reduce }) {
      const words = [map === null ? null : `maps ${span(map)}`, reduce === null ? null : `reduces ${span(reduce)}`].filter(Boolean);
      element.hidden = words.length === 0;
      line.textContent = `Median: ${words.join(", ")}. All quantiles`;
    },
  };
}

/** Quantiles of successful attempts: an attempt far above the median is slow or has more data. */
function quantiles(answer) {
  const words = { 0: "Least", 50: "Median", 100: "Most" };
  return [["map", "maps"], ["reduce", "reduces"]].filter(([kind]) => answer[kind]).map(([kind, plural]) => {
    const phase = answer[kind];
    const known = FIGURES.filter(([, name]) => phase[name].at(-1) > 0);
    return [make("h3", {}, `${count(phase.attempts)} ${plural} that succeeded`),
      table(`Quantiles of ${plural}`, [["Figure", ([label]) => label, "id"], ...answer.percents.map((percent, at) => [words[percent] ?? `${percent} %`, ([, name, form]) => form(phase[name][at]), "number"])], known, "No figures yet.")];
  });
}

/** Bytes of a successful attempt, with its records in the tooltip. */
function moved(size, records) {
  return size === null ? "" : make("span", { title: `${count(records)} records` }, bytes(size));
}

/** A list of attempts with buttons for their logs. */
export function attempts(items, job, name = "Attempts") {
  const columns = [
    ["Attempt", (item) => sentence(item.attempt), "id"],
    ["Worker", (item) => sentence(`${item.worker} (${item.worker_name})`), "id"],
    ["Launched", (item) => make("time", { title: utc(item.launched_millis) }, moment(item.launched_millis)), "id"],
    ["Took", (item) => (goesOn(item, job) ? taken(item.launched_millis, null) : item.ended_millis === null ? "" : taken(item.launched_millis, item.ended_millis)), "number"],
    ["Read", (item) => moved(item.input_bytes, item.input_records), "number"],
    ["Wrote", (item) => moved(item.output_bytes, item.output_records), "number"],
    ["Waited", (item) => (item.shuffle_millis ? span(item.shuffle_millis) : ""), "number"],
    ["Processor", (item) => (item.processor_millis === null ? "" : span(item.processor_millis)), "number"],
    ["End", (item) => (item.end ? (item.end === "succeeded" ? state(item.end) : sentence(item.end)) : state("running")), "text reason"],
    ["Logs", (item) => [logButton(item.attempt, "stdout"), logButton(item.attempt, "stderr")], "id"],
  ];
  return table(name, withValues(columns, items), items, job.ended_millis === null ? "No attempt was launched yet." : "No attempt was launched.");
}

/** Whether an attempt is still running; none is in a job that has ended. */
function goesOn(attempt, job) {
  return attempt.ended_millis === null && job.ended_millis === null;
}
