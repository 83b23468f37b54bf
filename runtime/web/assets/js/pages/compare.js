// Two jobs side by side: figures, what was submitted, counters and timelines on one axis. Both jobs are part of the address.

import { link, make, renew, state, table } from "../elements.js";
import { count, signed, span } from "../format.js";
import { get, ofRecording } from "../net.js";
import { getTimeline } from "../timeline/columns.js";
import { Timeline } from "../timeline/timeline.js";

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
      const [compared, ...both] = await Promise.all([get(`jobs/${chosen.left}/compare?with=${encodeURIComponent(chosen.right)}`),
        getTimeline(`jobs/${chosen.left}/timeline`), getTimeline(`jobs/${chosen.right}/timeline`)]);
      const { left, right, submitted, counters: different } = compared;
      isLive = [left, right].some(({ state: now }) => !ENDED.includes(now));
      lives.hidden = false;
      const longest = Math.max(...both.map((life) => life.until_micros - life.base_micros));
      both.forEach((life, side) => pictures[side].show({ ...life, until_micros: life.base_micros + longest }));
      renew(figures, comparison(left, right));
      renew(asked, make("h2", {}, "Submitted differently"), differences(compared, submitted));
      renew(counters, make("h2", {}, "Counters that differ"), countersOf(compared, different));
    },
  };
}

const ENDED = ["succeeded", "failed", "killed"];

const FIGURES = [
  ["From submission to end", "took_millis", span],
  ["Waited for its first slot", "waited_millis", span],
  ["Slot time", "held_millis", span],
  ["Naps, of all tasks", "napped_millis", span],
  ["Attempts", "attempts", count],
  ["Slots taken from it", "taken", count],
  ["Empty until used, of these", "kept_millis", span],
  ["Work saved", "work_saved_millis", span],
  ["Work lost", "work_lost_millis", span],
];

function comparison(left, right) {
  const rows = FIGURES.map(([words, name, form]) => ({ words, one: left[name], other: right[name], form }));
  const head = (job) => make("span", {}, link(`/jobs/${job.job}`, job.job), ` ${job.name} `, state(job.state));
  return table("Totals", [
    ["Figure", (row) => row.words],
    [head(left), (row) => row.form(row.one), "number"],
    [head(right), (row) => row.form(row.other), "number"],
    ["Difference", (row) => signed(row.other - row.one, row.form), "number"],
    ["Ratio", (row) => ratio(row.one, row.other), "number"],
  ], rows, "");
}

function differences({ left, right }, rows) {
  return table("What was submitted differently", [
    ["What", (row) => row.label, "text"],
    [left.job, (row) => make("code", {}, row.left), "text"],
    [right.job, (row) => make("code", {}, row.right), "text"],
  ], rows, "Both were submitted alike.");
}

function ratio(one, other) {
  return one > 0 ? (other / one).toFixed(2) : "–";
}

function countersOf({ left, right }, rows) {
  return table("Counters that differ", [
    ["Counter", (row) => row.counter, "id"],
    [left.job, (row) => count(row.left), "number"],
    [right.job, (row) => count(row.right), "number"],
    ["Difference", (row) => signed(row.right - row.left, count), "number"],
    ["Ratio", (row) => ratio(row.left, row.right), "number"],
  ], rows, "All counters are the same.");
}
