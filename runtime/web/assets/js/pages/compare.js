// Two jobs side by side: figures, what was submitted, counters and timelines on one axis. Both jobs are part of the address.

import { link, make, renew, state, table } from "../elements.js";
import { now } from "../clock.js";
import { count, signed, span } from "../format.js";
import { get, ofRecording } from "../net.js";
import { getTimeline } from "../timeline/columns.js";
import { Timeline } from "../timeline/timeline.js";
import { rowsOf } from "./submitted.js";

const KNOWN_MAX = 1000;

export function view({ main, query, again }) {
  const chosen = { left: query.get("left") ?? "", right: query.get("right") ?? "" };
  const choose = (side, label) => make("input", { type: "search", list: "jobs-known", placeholder: "job_0007", "aria-label": label, value: chosen[side],
    change: (event) => {
      chosen[side] = event.target.value.trim();
      const params = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value));
      history.replaceState(null, "", ofRecording(`/compare${params.size ? `?${params}` : ""}`));
      again();
    } });
  const known = make("datalist", { id: "jobs-known" });
  const pictures = ["left", "right"].map((side) => new Timeline({ label: `The life of the job on the ${side}`, byTask: true }));
  const figures = make("div");
  const lives = make("section", { hidden: true }, make("h2", {}, "Lives, from the first launch on"), pictures.map((picture) => picture.element));
  const asked = make("div");
  const counters = make("div");
  main.append(make("h1", {}, "Compare two jobs"),
    make("div", { class: "bar" }, choose("left", "Job on the left"), make("span", { class: "quiet" }, "and"), choose("right", "Job on the right"), known),
    figures, asked, lives, counters);
  let isLive = true;
  return {
    title: "Compare",
    get isLive() { return isLive; },
    leave: () => pictures.forEach((picture) => picture.leave()),
    repaint: () => pictures.forEach((picture) => picture.draw()),
    async refresh() {
      const { items } = await get(`jobs?limit=${KNOWN_MAX}`);
      renew(known, items.map((job) => make("option", { value: job.job }, `${job.name}, ${job.state}`)));
      if (!chosen.left || !chosen.right) {
        renew(figures, make("p", { class: "quiet" }, "Name two jobs, such as one that was killed for others and one that was suspended."));
        lives.hidden = true;
        asked.replaceChildren();
        counters.replaceChildren();
        isLive = true;
        return;
      }
      const [left, right] = await Promise.all([sideOf(chosen.left), sideOf(chosen.right)]);
      isLive = [left, right].some(({ job }) => job.ended_millis === null);
      lives.hidden = false;
      const longest = Math.max(...[left, right].map(({ life }) => life.until_micros - life.base_micros));
      [left, right].forEach(({ life }, side) => pictures[side].show({ ...life, until_micros: life.base_micros + longest }));
      renew(figures, comparison(left, right));
      renew(asked, make("h2", {}, "Submitted differently"), differences(left, right));
      renew(counters, make("h2", {}, "Counters that differ"), countersOf(left, right));
    },
  };
}

async function sideOf(id) {
  const [job, life, { counters }, history, submitted] =
    await Promise.all([get(`jobs/${id}`), getTimeline(`jobs/${id}/timeline`), get(`jobs/${id}/counters`), get(`jobs/${id}/history`), get(`jobs/${id}/submitted`)]);
  return { job, life, counters, history, submitted };
}

/** Figures of a job as numbers; times in milliseconds. */
function sums({ job, life, history }) {
  const total = (list, name) => list.reduce((sum, item) => sum + (item[name] ?? 0), 0);
  const ended = job.ended_millis ?? now();
  const first = Math.min(ended, ...history.attempts.map((attempt) => attempt.launched_millis));
  const taken = history.preemptions.filter((one) => one.freed_micros !== null);
  return {
    took: ended - job.submitted_millis,
    waited: first - job.submitted_millis,
    held: life.held_micros / 1000,
    napped: life.napped_micros / 1000,
    attempts: history.attempts.length,
    taken: taken.length,
    saved: total(history.preemptions, "work_saved_millis"),
    lost: total(history.preemptions, "work_lost_millis"),
    kept: total(taken, "kept_millis"),
  };
}

const FIGURES = [
  ["From submission to end", "took", span],
  ["Waited for its first slot", "waited", span],
  ["Slot time", "held", span],
  ["Naps, of all tasks", "napped", span],
  ["Attempts", "attempts", count],
  ["Slots taken from it", "taken", count],
  ["Empty until used, of these", "kept", span],
  ["Work saved", "saved", span],
  ["Work lost", "lost", span],
];

function comparison(left, right) {
  const [one, other] = [sums(left), sums(right)];
  const rows = FIGURES.map(([words, name, form]) => ({ words, one: one[name], other: other[name], form }));
  const head = ({ job }) => make("span", {}, link(`/jobs/${job.job}`, job.job), ` ${job.name} `, state(job.state));
  return table("Totals", [
    ["Figure", (row) => row.words],
    [head(left), (row) => row.form(row.one), "number"],
    [head(right), (row) => row.form(row.other), "number"],
    ["Difference", (row) => signed(row.other - row.one, row.form), "number"],
    ["Ratio", (row) => ratio(row.one, row.other), "number"],
  ], rows, "");
}

/** The rows of what was submitted that differ; a row that only one job can have is none. */
function differences(left, right) {
  const [one, other] = [left, right].map(({ submitted }) => rowsOf(submitted));
  const rows = one.map(([words, value], at) => ({ words, one: value, other: other[at][1] })).filter((row) => row.one !== row.other && row.one !== null && row.other !== null);
  return table("What was submitted differently", [
    ["What", (row) => row.words, "text"],
    [left.job.job, (row) => make("code", {}, row.one), "text"],
    [right.job.job, (row) => make("code", {}, row.other), "text"],
  ], rows, "Both were submitted alike.");
}

function ratio(one, other) {
  return one > 0 ? (other / one).toFixed(2) : "–";
}

function countersOf(left, right) {
  const names = [...new Set([...Object.keys(left.counters), ...Object.keys(right.counters)])].sort();
  const rows = names.map((name) => ({ name, one: left.counters[name] ?? 0, other: right.counters[name] ?? 0, form: count }))
    .filter(({ one, other }) => one !== other);
  return table("Counters that differ", [
    ["Counter", (row) => row.name, "id"],
    [left.job.job, (row) => count(row.one), "number"],
    [right.job.job, (row) => count(row.other), "number"],
    ["Difference", (row) => signed(row.other - row.one, row.form), "number"],
    ["Ratio", (row) => ratio(row.one, row.other), "number"],
  ], rows, "All counters are the same.");
}
