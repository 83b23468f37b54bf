// Two recordings of the same jobs, for example one workload under two schedulers: sums, timelines, and jobs by their difference.

import { link, make, renew, table } from "../elements.js";
import { count, signed, span } from "../format.js";
import { get } from "../net.js";
import { getTimeline } from "../timeline/columns.js";
import { Timeline } from "../timeline/timeline.js";

export function view({ main, query }) {
  const [left, right] = [query.get("left") ?? "", query.get("right") ?? ""];
  const sums = make("div");
  const closer = (recording) => (from, until) => getTimeline(`timeline?${new URLSearchParams({ recording, from, until })}`, { isKept: false });
  const pictures = [left, right].map((name) => new Timeline({ label: `Who held which slot in ${name}`, closer: closer(name) }));
  const headings = [left, right].map((name) => make("h3", {}, name));
  const under = [make("p", { class: "under" }), make("p", { class: "under" })];
  const jobs = make("div");
  main.append(make("h1", {}, "Compare two recordings"), make("p", {}, link("/recordings", "All recordings")), sums,
    make("h2", {}, "Slots, from the first submission on"),
    ...pictures.map((picture, side) => make("section", {}, headings[side], picture.element, under[side])),
    make("h2", {}, "Jobs that differ most"), jobs);
  return {
    title: "Compare recordings",
    isLive: false,
    leave: () => pictures.forEach((picture) => picture.leave()),
    repaint: () => pictures.forEach((picture) => picture.draw()),
    async refresh() {
      const compared = await get(`compare?${new URLSearchParams({ left, right })}`);
      renew(sums, figures(compared));
      [compared.left, compared.right].forEach((side, at) => { headings[at].textContent = `${side.recording}: ${named(side)}`; });
      renew(jobs, differences(compared, left, right));
      await draw([compared.left, compared.right], pictures, under);
    },
  };
}

/** Puts both timelines on one axis, so that the longer one ends further right. */
async function draw(sides, pictures, under) {
  const longest = Math.max(...sides.map((side) => side.makespan_millis)) * 1000;
  await Promise.all(sides.map(async (side, at) => {
    const asked = new URLSearchParams({ recording: side.recording, from: side.from_millis, until: side.until_millis });
    const window = await getTimeline(`timeline?${asked}`);
    pictures[at].show({ ...window, until_micros: window.base_micros + longest });
    under[at].textContent = window.jobs_left_out ? `${count(window.jobs_left_out)} older jobs are not in the picture` : "";
  }));
}

const FIGURES = [
  ["Jobs", (side) => side.jobs, count],
  ["Failed or killed", (side) => side.failed + side.killed, count],
  ["Makespan", (side) => side.makespan_millis, span],
  ["Sojourn, mean", (side) => side.sojourn.mean, span],
  ["Sojourn, median", (side) => side.sojourn.p50, span],
  ["Sojourn, 95 of 100", (side) => side.sojourn.p95, span],
  ["Sojourn, longest", (side) => side.sojourn.max, span],
  ["Slots taken", (side) => side.preemptions, count],
  ["Work saved", (side) => side.work_saved_millis, span],
  ["Work lost", (side) => side.work_lost_millis, span],
];

function figures({ left, right, differing }) {
  const head = (side) => make("span", {}, link(`/jobs?recording=${encodeURIComponent(side.recording)}`, side.recording), ` ${named(side)}`);
  const rows = FIGURES.map(([words, of, form]) => ({ words, one: of(left), other: of(right), form }));
  const totals = table("Totals", [
    ["Figure", (row) => row.words],
    [head(left), (row) => row.form(row.one), "number"],
    [head(right), (row) => row.form(row.other), "number"],
    ["Difference", (row) => signed(row.other - row.one, row.form), "number"],
    ["Ratio", (row) => (row.one > 0 ? (row.other / row.one).toFixed(3) : "–"), "number"],
  ], rows, "");
  const value = (side) => (name) => make("code", {}, side.settings[name] ?? "default");
  const settings = table("Settings that differ", [
    ["Setting", (name) => make("code", {}, name), "text"],
    [left.recording, value(left), "text"],
    [right.recording, value(right), "text"],
  ], differing, "Both were run with the same settings.");
  return [totals, make("h2", {}, "Settings that differ"), settings];
}

/** The policy of a recording, with its primitive. */
function named({ scheduler, primitive }) {
  return [scheduler, primitive].filter(Boolean).join(", ");
}

function differences({ jobs, jobs_left_out }, left, right) {
  const of = (recording, id) => (id === null ? "–" : link(`/jobs/${id}?recording=${encodeURIComponent(recording)}`, id));
  return [
    table("Jobs", [
      ["Name", (job) => job.name, "text"],
      [left, (job) => of(left, job.left), "id"],
      [right, (job) => of(right, job.right), "id"],
      ["Took on the left", (job) => span(job.left_millis), "number"],
      ["on the right", (job) => span(job.right_millis), "number"],
      ["Difference", (job) => (job.difference_millis === null ? "–" : signed(job.difference_millis, span)), "number"],
    ], jobs, "Neither has a job that has ended."),
    jobs_left_out > 0 && make("p", { class: "under" }, `${count(jobs_left_out)} more differ less`),
  ];
}
