// What-if: a form that simulates the history under other schedulers, and the results, with their fidelity first.

import { card, link, make, renew, state, table } from "../elements.js";
import { count, moment, span, taken } from "../format.js";
import { Problem, mayOrder, order } from "../net.js";
import { orderButton } from "../orders.js";

const STEP_MILLIS = 1000;

/** The form, and the list of what-ifs below it. */
export class WhatIfs {
  element = make("section", { "aria-labelledby": "what-if", hidden: true });
  #again;
  #list = make("div");
  #timer = 0;
  #isBuilt = false;
  /** Whether a what-if is queued or running. */
  isOpen = false;

  constructor({ again }) {
    this.#again = again;
  }

  /** Shows the what-ifs, with figures from their recordings. */
  show({ items, schedulers, time_max_millis }, recordings) {
    if (!this.#isBuilt) this.#build(schedulers, time_max_millis, recordings);
    this.element.hidden = false;
    renew(this.#list, items.map((item) => panel(item, recordings, time_max_millis, this.#again)),
      items.length === 0 && !mayOrder() && make("p", { class: "quiet" }, "No what-ifs yet. To start one, sign in with a link created without --view."));
    this.isOpen = items.some(isOpen);
    clearTimeout(this.#timer);
    if (this.isOpen) this.#timer = setTimeout(this.#again, STEP_MILLIS);
  }

  leave() {
    clearTimeout(this.#timer);
  }

  #build(schedulers, limit, recordings) {
    this.#isBuilt = true;
    const histories = recordings.filter(({ kind }) => kind === "history").map(({ recording }) => recording);
    this.element.append(make("h2", { id: "what-if" }, "What if"), mayOrder() ? form(schedulers, limit, histories, this.#again) : "", this.#list);
  }
}

function isOpen({ state: word }) {
  return word === "queued" || word === "running";
}

function form(schedulers, limit, histories, again) {
  const boxes = schedulers.map((name) => make("input", { type: "checkbox", name: "scheduler", value: name }));
  const [from, until] = ["Submitted from", "until"].map((label) => make("input", { type: "datetime-local", step: "1", "aria-label": label }));
  const jobs = make("input", { type: "search", placeholder: "all, or job_0004 job_0007", "aria-label": "Jobs" });
  const history = make("select", { "aria-label": "History" }, histories.map((name) => make("option", { value: name }, name)));
  const tables = make("textarea", {
    rows: "6", maxlength: "32768", spellcheck: "false", "aria-label": "Tables of the schedulers, as TOML",
    placeholder: "[scheduler.capacity]\n[preemption]\nprimitive = \"suspend\"",
  });
  const message = make("p", { role: "alert", class: "bad-words" });
  const send = async (event) => {
    event.preventDefault();
    message.textContent = "";
    try {
      await order("what-if", {
        schedulers: boxes.filter((box) => box.checked).map((box) => box.value),
        from: millis(from), until: millis(until), jobs: jobs.value.split(/[\s,]+/).filter(Boolean),
        configuration: tables.value.trim() || null,
        recording: histories.length > 1 ? history.value : null,
      });
      again();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      message.textContent = [error.message, error.remedy].filter(Boolean).join("; ");
    }
  };
  return make("form", { class: "panel what-if-form", submit: send },
    make("p", {}, "Simulates the jobs that have succeeded under other schedulers, on the same workers. ",
      make("span", { class: "quiet" }, `One simulation runs at a time, at low priority, for at most ${span(limit)}.`)),
    make("fieldset", {}, make("legend", {}, "Schedulers to compare with the recorded one"),
      boxes.map((box) => make("label", {}, box, box.value))),
    make("div", { class: "bar" },
      histories.length > 1 && [make("span", {}, "History"), history],
      make("span", {}, "Submitted from"), from, make("span", {}, "until"), until,
      make("span", { class: "quiet" }, "default: all"), make("span", {}, "Jobs"), jobs),
    make("details", {}, make("summary", {}, "Override the scheduler tables of the cluster"), tables),
    make("div", { class: "bar" }, make("button", { type: "submit" }, "Simulate"), message));
}

/** Converts local time to milliseconds since 1970. */
function millis(input) {
  return input.value ? new Date(input.value).getTime() : null;
}

function panel(item, recordings, limit, again) {
  const running = isOpen(item);
  return make("article", { class: "panel what-if", "aria-label": item.what_if },
    make("div", { class: "bar" }, make("h3", {}, title(item)), state(words(item, limit)),
      make("span", { class: "grow" }),
      mayOrder() && orderButton({
        label: running ? "Stop" : "Remove", title: `${running ? "Stop" : "Remove"} ${item.what_if}?`, about: running ? "The work done so far is lost." : "Its recordings are deleted as well.",
        path: `what-if/${item.what_if}/remove`, asksWhy: false, done: again,
      })),
    make("p", { class: "quiet" }, about(item)),
    item.error !== null && make("p", { class: "bad-words" }, item.error),
    item.state === "done" && [fidelity(item), results(item, recordings), remarks(item)]);
}

function title({ what_if, schedulers }) {
  return `${what_if}: ${schedulers.length ? schedulers.join(", ") : "the recorded scheduler only"}`;
}

function words({ state: word, begun_millis, ended_millis, percent: done }, limit) {
  if (word === "queued") return "queued";
  const far = done === null ? "" : `, ${done} % done`;
  if (word === "running") return `running for ${taken(begun_millis)}${far}, at most ${span(limit)}`;
  return `${word} after ${span(ended_millis - begun_millis)}`;
}

function about({ recording, from_millis, until_millis, jobs, by, asked_millis, configuration }) {
  const bounds = [from_millis !== null && `from ${moment(from_millis)}`, until_millis !== null && `until ${moment(until_millis)}`].filter(Boolean);
  return [
    `${recording ? `${recording}: ` : ""}${meant(jobs, bounds)}`,
    configuration !== null && "with its own scheduler tables",
    `requested by ${by} at ${moment(asked_millis)}`,
  ].filter(Boolean).join(", ");
}

function meant(jobs, bounds) {
  if (jobs.length) return `${jobs.slice(0, 8).join(", ")}${jobs.length > 8 ? ` and ${count(jobs.length - 8)} more` : ""}`;
  return bounds.length ? `jobs submitted ${bounds.join(" ")}` : "all jobs";
}

/** How far the simulation of the recorded scheduler is from the history; without this, the other figures mean little. */
function fidelity({ fidelity: errors, recording }) {
  const bound = "Jobs are submitted at their recorded times, even those that waited for another job to end.";
  if (errors === null) {
    return make("div", { class: "panel why" }, make("p", { class: "why" }, "The accuracy is unknown, because the history does not name its scheduler. Compare directions only."), make("p", {}, bound));
  }
  const of = recording ? `?recording=${encodeURIComponent(recording)}` : "";
  const worst = errors.largest_of !== null && link(`/jobs/${errors.largest_of}${of}`, errors.largest_of);
  const isSure = errors.doubtful.length === 0;
  return [
    make("div", { class: "cards" },
      card("Mean sojourn is off by", percent(errors.sojourn_mean_error), "simulation of the recorded scheduler"),
      card("Makespan", percent(errors.makespan_error), "from first submission to last end"),
      card("Single jobs", percent(errors.sojourn_median_error), "median error of the sojourn"),
      card("Largest error of a job", percent(errors.sojourn_largest_error), worst || "")),
    make("div", { class: `panel ${isSure ? "" : "why"}` },
      make("p", { class: isSure ? "" : "why" }, isSure ? "The simulation is within 10 % of the history." : `More than 10 % off: ${errors.doubtful.join(", ")}. Compare directions only, not sizes.`),
      make("p", { class: "quiet" }, bound)),
  ];
}

function percent(share) {
  return `${(share * 100).toFixed(1)} %`;
}

/** The results of each scheduler, next to the recorded one. */
function results({ recordings: names, fidelity: errors }, recordings) {
  const found = names.map((name) => recordings.find(({ recording }) => recording === name)).filter(Boolean);
  const base = found.find(({ recording }) => recording.includes("-as-recorded."));
  const isSure = errors !== null && errors.doubtful.length === 0;
  const against = (one) => (!base || one === base ? "–" : change(one.sojourn.mean, base.sojourn.mean, isSure));
  const compare = (one) => base && one !== base && link(`/recordings/compare?${new URLSearchParams({ left: base.recording, right: one.recording })}`, `Compare with ${one.scheduler ?? "it"}`);
  return table("Results", [
    ["Scheduler", (one) => `${one.scheduler ?? "unknown"}${one === base ? ", as recorded" : ""}`],
    ["Primitive", (one) => one.primitive ?? "unknown"],
    ["Recording", (one) => link(`/jobs?recording=${encodeURIComponent(one.recording)}`, one.recording), "id"],
    ["Sojourn, mean", (one) => span(one.sojourn.mean), "number"],
    ["Against the recorded one", against, "number"],
    ["Makespan", (one) => span(one.makespan_millis), "number"],
    ["Slots taken", (one) => count(one.preemptions), "number"],
    ["Comparison", compare, "id"],
  ], found, "Its recordings have been deleted.");
}

/** A difference: with its size only if the simulation is accurate enough. */
function change(value, base, isSure) {
  if (value === base) return "the same";
  const direction = value < base ? "shorter" : "longer";
  return isSure && base > 0 ? `${percent(Math.abs(value / base - 1))} ${direction}` : direction;
}

function remarks({ remarks: lines }) {
  return lines.length > 0 && make("details", {}, make("summary", {}, "Data missing in the history and values estimated from it"), make("ul", {}, lines.map((line) => make("li", {}, line))));
}
