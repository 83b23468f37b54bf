// The tabs of a job: timeline, tasks with their attempts and logs, preemptions, counters, what was submitted, events.

import { csvLink, link, make, renew, sentence, table } from "../elements.js";
import { count, moment, utc } from "../format.js";
import { get, ofRecording } from "../net.js";
import { getTimeline } from "../timeline/columns.js";
import { Timeline } from "../timeline/timeline.js";
import { preemptions } from "./ledger.js";
import { list } from "./paged.js";
import { submitted } from "./submitted.js";
import { tasks } from "./tasks.js";

/** With more tasks, a timeline opens by slot. */
const TASK_ROWS_MAX = 60;

function timeline({ id, place, query, again }) {
  let isChosen = query.has("by");

  const address = (window) => {
    const asked = new URLSearchParams({ ...(picture.byTask ? {} : { neighbours: true }), ...window });
    return `jobs/${id}/timeline${asked.size ? `?${asked}` : ""}`;
  };
  const closer = (from, until) => getTimeline(address({ from, until }), { isKept: false });
  const picture = new Timeline({ label: `The life of ${id}`, byTask: query.get("by") !== "slot", own: Number(id.slice(4)), swapped: again, closer, isAddressed: true });
  place.append(picture.element, make("p", { class: "under" },
    make("a", { href: ofRecording(`/api/nap/v1/jobs/${id}/trace.json`), download: `${id}.trace.json` }, "Save a trace for Perfetto"), " · ",
    make("a", { href: ofRecording(`/api/nap/v1/jobs/${id}/report.html`), download: `${id}.html` }, "Save a report"), " · ", link(`/compare?left=${id}`, "Compare with another job")));
  return {
    leave: () => picture.leave(),
    repaint: () => picture.draw(),
    async refresh(job) {
      if (!isChosen && job.map.tasks + job.reduce.tasks > TASK_ROWS_MAX) picture.byTask = false;
      const answer = await getTimeline(address({}));
      // Preemptions are seen best by slot, with the work that got the slot.
      if (!isChosen && picture.byTask && answer.preemptions.length > 0) picture.byTask = false;
      else picture.show(answer);
      const isSwapped = !isChosen && !picture.byTask && answer.preemptions.length > 0;
      isChosen = true;
      if (isSwapped) picture.show(await getTimeline(address({})));
    },
  };
}

function counters({ id, place }) {
  return {
    async refresh() {
      const { counters: all } = await get(`jobs/${id}/counters`);
      const rows = Object.entries(all);
      renew(place, table("Counters", [["Counter", ([name]) => name, "text"], ["Value", ([, value]) => count(value), "number"]], rows, "No counters yet."),
        rows.length > 0 && make("p", { class: "under" }, csvLink(`jobs/${id}/counters`)));
    },
  };
}

function events(items) {
  return table("Events", [
    ["When", (item) => make("time", { title: utc(item.at_millis) }, moment(item.at_millis)), "id"],
    ["What", (item) => sentence(item.text), "text reason"],
  ], items, "No events yet.");
}

/** The tabs in order: name in the address, label, and constructor. */
export const TABS = [
  ["timeline", { label: "Timeline", make: timeline }],
  ["tasks", { label: "Tasks", make: tasks }],
  ["preemptions", { label: "Preemptions", make: preemptions }],
  ["counters", { label: "Counters", make: counters }],
  ["submitted", { label: "Submitted", make: submitted }],
  ["events", { label: "Events", make: list("events", events) }],
];
