// What if another policy had given the slots: a form that asks for simulations of the history, and what came of each.
// Owns what is asked for, and that how far it can be trusted is said first. Does not own the list of recordings (recordings).

import { card, link, make, renew, state, table } from "../elements.js";
import { count, moment, span, taken } from "../format.js";
import { Problem, mayOrder, order } from "../net.js";
import { orderButton } from "../orders.js";

const STEP_MILLIS = 1000;

/** The form and the what-ifs under it. */
export class WhatIfs {
  element = make("section", { "aria-labelledby": "what-if", hidden: true });
  #again;
  #list = make("div");
  #timer = 0;
  #isBuilt = false;
  /** Whether one waits or runs. */
  isOpen = false;

  constructor({ again }) {
    this.#again = again;
  }

  /** Shows what the server knows of them, beside what recordings come to. */
  show({ items, schedulers, time_max_millis }, recordings) {
    if (!this.#isBuilt) this.#build(schedulers, time_max_millis, recordings);
    this.element.hidden = false;
    renew(this.#list, items.map((item) => panel(item, recordings, time_max_millis, this.#again)),
      items.length === 0 && !mayOrder() && make("p", { class: "quiet" }, "Nobody has asked for one. Whoever signs in by a link without --view can."));
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
  const said = make("p", { role: "alert", class: "bad-words" });
  const send = async (event) => {
    event.preventDefault();
    said.textContent = "";
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
      said.textContent = [error.message, error.remedy].filter(Boolean).join("; ");
    }
  };
  return make("form", { class: "panel what-if-form", submit: send },
    make("p", {}, "The jobs that have succeeded, again, as if other policies had given the slots on the same workers. ",
      make("span", { class: "quiet" }, `One is simulated at a time, after everything else this machine does, for ${span(limit)} at most.`)),
    make("fieldset", {}, make("legend", {}, "Policies to try beside the recorded one"),
      boxes.map((box) => make("label", {}, box, box.value))),
    make("div", { class: "bar" },
      histories.length > 1 && [make("span", {}, "History"), history],
      make("span", {}, "Submitted from"), from, make("span", {}, "until"), until,
      make("span", { class: "quiet" }, "all of them unless said"), make("span", {}, "Jobs"), jobs),
    make("details", {}, make("summary", {}, "Other tables than those of the cluster"), tables),
    make("div", { class: "bar" }, make("button", { type: "submit" }, "Simulate"), said));
}

/** A local moment, as milliseconds since 1970. */
function millis(input) {
  return input.value ? new Date(input.value).getTime() : null;
}

function panel(item, recordings, limit, again) {
  const running = isOpen(item);
  return make("article", { class: "panel what-if", "aria-label": item.what_if },
    make("div", { class: "bar" }, make("h3", {}, title(item)), state(words(item, limit)),
      make("span", { class: "grow" }),
      mayOrder() && orderButton({
        label: running ? "End it" : "Remove", title: `${running ? "End" : "Remove"} ${item.what_if}?`, about: running ? "What it has done is lost." : "Its recordings go with it.",
        path: `what-if/${item.what_if}/remove`, asksWhy: false, done: again,
      })),
    make("p", { class: "quiet" }, about(item)),
    item.error !== null && make("p", { class: "bad-words" }, item.error),
    item.state === "done" && [fidelity(item), results(item, recordings), remarks(item)]);
}

function title({ what_if, schedulers }) {
  return `${what_if}: ${schedulers.length ? schedulers.join(", ") : "the recorded policy alone"}`;
}

function words({ state: word, begun_millis, ended_millis, percent: done }, limit) {
  if (word === "queued") return "waiting for its turn";
  const far = done === null ? "" : `, ${done} % done`;
  if (word === "running") return `running for ${taken(begun_millis)}${far}, ${span(limit)} at most`;
  return `${word} after ${span(ended_millis - begun_millis)}`;
}

function about({ recording, from_millis, until_millis, jobs, by, asked_millis, configuration }) {
  const bounds = [from_millis !== null && `from ${moment(from_millis)}`, until_millis !== null && `until ${moment(until_millis)}`].filter(Boolean);
  return [
    `${recording ? `${recording}: ` : ""}${meant(jobs, bounds)}`,
    configuration !== null && "with tables of its own",
    `asked for by ${by} at ${moment(asked_millis)}`,
  ].filter(Boolean).join(", ");
}

function meant(jobs, bounds) {
  if (jobs.length) return `${jobs.slice(0, 8).join(", ")}${jobs.length > 8 ? ` and ${count(jobs.length - 8)} more` : ""}`;
  return bounds.length ? `jobs submitted ${bounds.join(" ")}` : "all jobs";
}

/** How far the recorded policy, simulated, is from what happened: nothing else says more before this is known. */
function fidelity({ fidelity: said, recording }) {
  const bound = "Each job is submitted when it was, also one that waited for another to end.";
  if (said === null) {
    return make("div", { class: "panel why" }, make("p", { class: "why" }, "How far this is from what happened is not known: the history does not say which policy it had. Compare directions only."), make("p", {}, bound));
  }
  const of = recording ? `?recording=${encodeURIComponent(recording)}` : "";
  const worst = said.largest_of !== null && link(`/jobs/${said.largest_of}${of}`, said.largest_of);
  const isSure = said.doubtful.length === 0;
  return [
    make("div", { class: "cards" },
      card("Mean sojourn is off by", percent(said.sojourn_mean_error), "the recorded policy, simulated"),
      card("Makespan", percent(said.makespan_error), "from first submission to last end"),
      card("Single jobs", percent(said.sojourn_median_error), "median of their sojourns"),
      card("The job farthest off", percent(said.sojourn_largest_error), worst || "")),
    make("div", { class: `panel ${isSure ? "" : "why"}` },
      make("p", { class: isSure ? "" : "why" }, isSure ? "The simulation is within 10 % of what happened." : `More than 10 % off by ${said.doubtful.join(", ")}: only directions can be compared, not sizes.`),
      make("p", { class: "quiet" }, bound)),
  ];
}

function percent(share) {
  return `${(share * 100).toFixed(1)} %`;
}

/** What each policy came to, beside the recorded one. */
function results({ recordings: names, fidelity: said }, recordings) {
  const found = names.map((name) => recordings.find(({ recording }) => recording === name)).filter(Boolean);
  const base = found.find(({ recording }) => recording.includes("-as-recorded."));
  const isSure = said !== null && said.doubtful.length === 0;
  const against = (one) => (!base || one === base ? "–" : change(one.sojourn.mean, base.sojourn.mean, isSure));
  const compare = (one) => base && one !== base && link(`/recordings/compare?${new URLSearchParams({ left: base.recording, right: one.recording })}`, `Compare with ${one.scheduler ?? "it"}`);
  return table([
    ["Policy", (one) => `${one.scheduler ?? "unknown"}${one === base ? ", as recorded" : ""}`],
    ["Recording", (one) => link(`/jobs?recording=${encodeURIComponent(one.recording)}`, one.recording), "id"],
    ["Sojourn, mean", (one) => span(one.sojourn.mean), "number"],
    ["Against the recorded one", against, "number"],
    ["Makespan", (one) => span(one.makespan_millis), "number"],
    ["Slots taken", (one) => count(one.preemptions), "number"],
    ["", compare, "id"],
  ], found, "Its recordings are gone.");
}

/** Sizes only where they can be believed. */
function change(value, base, isSure) {
  if (value === base) return "the same";
  const direction = value < base ? "shorter" : "longer";
  return isSure && base > 0 ? `${percent(Math.abs(value / base - 1))} ${direction}` : direction;
}

function remarks({ remarks: said }) {
  return said.length > 0 && make("details", {}, make("summary", {}, "What the history says and lacks"), make("ul", {}, said.map((line) => make("li", {}, line))));
}
