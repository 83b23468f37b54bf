// The start page: slots in use, waiting jobs with their reasons, and the timeline of the last minutes.

import { now } from "../clock.js";
import { card, csvLink, link, make, progress, queueLink, renew, sentence, state, table } from "../elements.js";
import { about, count } from "../format.js";
import { get } from "../net.js";
import { getTimeline } from "../timeline/columns.js";
import { Timeline } from "../timeline/timeline.js";
import { ENDED, OPEN } from "./jobs.js";

/** Lengths of the window in minutes. */
const WINDOWS = [1, 10, 60];
const MINUTE = 60_000;
const SHOWN_MAX = 50;
/** Of the jobs that wait for the same reason, so many have a row, and so many more are named below. */
const ALIKE_MAX = 3;
const NAMED_MAX = 10;

export function view({ main, query, again }) {
  let minutes = WINDOWS.find((known) => `${known}m` === query.get("last")) ?? 10;
  const above = make("div");
  const closer = (from, until) => getTimeline(`timeline?${new URLSearchParams({ from, until })}`, { isKept: false });
  const timeline = new Timeline({ label: "Slots of the last minutes", followsMillis: minutes * MINUTE, closer, isAddressed: true });
  const windows = WINDOWS.map((known) => make("button", { type: "button", click: () => choose(known) }, `${known} min`));
  const heading = make("h2");
  const mark = () => {
    heading.textContent = minutes === 1 ? "Slots, the last minute" : `Slots, the last ${minutes} minutes`;
    windows.forEach((button, at) => button.setAttribute("aria-pressed", String(WINDOWS[at] === minutes)));
  };
  const choose = (known) => {
    minutes = known;
    timeline.follow(minutes * MINUTE);
    mark();
    again();
  };
  mark();
  const left = make("p", { class: "under" });
  main.append(make("h1", {}, "Cluster"), above, heading, make("div", { class: "bar" }, make("div", { class: "joined", role: "group", "aria-label": "Length of the window" }, windows)), timeline.element, left);
  return {
    title: "Cluster",
    leave: () => timeline.leave(),
    repaint: () => timeline.draw(),
    async refresh() {
      const status = await get("cluster");
      renew(above, figures(status), warnings(status), current(status));
      const window = await getTimeline(`timeline?from=${Math.floor(now() - minutes * MINUTE)}`, { isKept: false });
      timeline.show(window);
      left.textContent = window.jobs_left_out ? `${count(window.jobs_left_out)} older jobs of this window are not shown` : "";
    },
  };
}

function figures(status) {
  const suspended = status.map.suspended + status.reduce.suspended;
  const cards = [
    ["Map slots in use", `${count(status.map.used)} / ${count(status.map.slots)}`, "", "/queues"],
    ["Reduce slots in use", `${count(status.reduce.used)} / ${count(status.reduce.slots)}`, "", "/queues"],
    ["Jobs running", count(status.jobs.running), others(status.jobs, ["waiting", "held", "suspended", "stopping"]), `/jobs?state=${OPEN}`],
    ["Napping tasks", count(suspended + status.checkpointed), `${count(suspended)} suspended, ${count(status.checkpointed)} checkpointed`, "/preemptions"],
    ["Workers up", count(status.workers.up), others(status.workers, ["excluded", "draining", "leaving", "lost"]), "/workers"],
    ["Ended jobs", count(status.jobs.succeeded + status.jobs.failed + status.jobs.killed), `${count(status.jobs.failed)} failed, ${count(status.jobs.killed)} killed`, `/jobs?state=${ENDED}`],
  ];
  return make("section", { class: "cards", "aria-label": "At a glance" }, cards.map((words) => card(...words)));
}

/** The states that something is in, with their numbers. */
function others(counts, states) {
  return states.filter((name) => counts[name] > 0).map((name) => `${count(counts[name])} ${name}`).join(", ");
}

function warnings(status) {
  return status.warnings.map((warning) => make("p", { class: "panel bad" }, sentence(warning.text), " ", make("span", { class: "quiet" }, warning.remedy)));
}

/** Jobs that run first, then those that wait; of many that wait for the same reason, the first ones and the number of the others. */
function current(status) {
  const shown = rowsOf(status.current);
  const more = shown.length - SHOWN_MAX;
  return [
    make("h2", {}, "Jobs that have not ended"),
    table("Jobs that have not ended", [
      ["Job", ({ job }) => link(`/jobs/${job.job}`, job.job), "id"],
      ["State", ({ job }) => state(job.state)],
      ["Name", ({ job }) => job.name, "text"],
      ["Why it waits", ({ job }) => (job.why ? sentence(job.why) : ""), "text reason"],
      ["Maps", ({ job }) => progress(job.map, "map")],
      ["Reduces", ({ job }) => progress(job.reduce, "reduce")],
      ["Left", ({ job }) => about(job.left), "left"],
      ["Queue", ({ job }) => queueLink(job.queue)],
    ], shown.slice(0, SHOWN_MAX), "Nothing runs. Submit a job with: PROGRAM INPUT --output DIR --cluster DIR", null, alike),
    make("p", { class: "under" }, more > 0 && link(`/jobs?state=${OPEN}`, `${count(more)} more`),
      status.current.length > 0 && csvLink(`jobs?${new URLSearchParams({ state: OPEN, limit: SHOWN_MAX })}`)),
  ];
}

const STATES = ["running", "stopping", "suspended", "held", "waiting"];

/** The rows: jobs by state, equal reasons together; `others` are jobs that are not shown since they wait for the reason of this one. */
function rowsOf(jobs) {
  const groups = new Map();
  for (const job of jobs) {
    // A reason may name its own job.
    const key = `${STATES.indexOf(job.state)} ${job.why ? job.why.replaceAll(job.job, "") : job.state === "running" ? job.job : ""}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(job);
  }
  const sorted = [...groups.values()].sort(([one], [other]) => STATES.indexOf(one.state) - STATES.indexOf(other.state));
  return sorted.flatMap((group) => {
    const rows = group.slice(0, ALIKE_MAX).map((job) => ({ job, others: [] }));
    rows.at(-1).others = group.slice(ALIKE_MAX);
    return rows;
  });
}

/** The row below the last job that is shown of those that wait for the same reason. */
function alike({ job, others: all }) {
  if (all.length === 0) return null;
  const named = all.slice(0, NAMED_MAX).flatMap(({ job: id }) => [link(`/jobs/${id}`, id), " "]);
  const words = job.why ? "for the same reason" : `${job.state}, too`;
  const rest = all.length - NAMED_MAX;
  return make("tr", { class: "alike" }, make("td", { colspan: "8" }, `${count(all.length)} more ${words}: `, named, rest > 0 && link(`/jobs?state=${job.state}`, `and ${count(rest)} more`)));
}
