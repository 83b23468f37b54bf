// The start page: slots in use, waiting jobs with their reasons, and the timeline of the last minutes.

import { now } from "../clock.js";
import { card, link, make, progress, queueLink, renew, sentence, state, table } from "../elements.js";
import { about, count } from "../format.js";
import { get } from "../net.js";
import { getTimeline } from "../timeline/columns.js";
import { Timeline } from "../timeline/timeline.js";
import { OPEN } from "./jobs.js";

/** Lengths of the window in minutes. */
const WINDOWS = [1, 10, 60];
const MINUTE = 60_000;
const SHOWN_MAX = 50;

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
    ["Map slots in use", `${count(status.map.used)} / ${count(status.map.slots)}`, ""],
    ["Reduce slots in use", `${count(status.reduce.used)} / ${count(status.reduce.slots)}`, ""],
    ["Jobs running", count(status.jobs.running), others(status.jobs, ["waiting", "held", "suspended", "stopping"])],
    ["Napping tasks", count(suspended + status.checkpointed), `${count(suspended)} suspended, ${count(status.checkpointed)} checkpointed`],
    ["Workers up", count(status.workers.up), others(status.workers, ["excluded", "draining", "leaving", "lost"])],
    ["Ended jobs", count(status.jobs.succeeded + status.jobs.failed + status.jobs.killed), `${count(status.jobs.failed)} failed, ${count(status.jobs.killed)} killed`],
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

function current(status) {
  const shown = status.current.slice(0, SHOWN_MAX);
  const more = status.current.length - shown.length;
  return [
    make("h2", {}, "Jobs that have not ended"),
    table("Jobs that have not ended", [
      ["Job", (job) => link(`/jobs/${job.job}`, job.job), "id"],
      ["Name", (job) => job.name, "text"],
      ["Queue", (job) => queueLink(job.queue)],
      ["State", (job) => state(job.state)],
      ["Maps", (job) => progress(job.map, "map")],
      ["Reduces", (job) => progress(job.reduce, "reduce")],
      ["Left", (job) => about(job.left), "id"],
      ["Why it waits", (job) => (job.why ? sentence(job.why) : ""), "text reason"],
    ], shown, "Nothing runs. Submit a job with: PROGRAM INPUT --output DIR --cluster DIR"),
    more > 0 && make("p", { class: "under" }, link(`/jobs?state=${OPEN}`, `${count(more)} more`)),
  ];
}
