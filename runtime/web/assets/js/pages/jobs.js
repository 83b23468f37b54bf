// The list of jobs. The filters are part of the address, so that a link shows the same list.

import { csvLink, link, make, progress, queueLink, renew, state, table } from "../elements.js";
import { about, count, moment, taken, utc } from "../format.js";
import { get, ofRecording } from "../net.js";

/** States of jobs that have not ended. */
export const OPEN = ["waiting", "running", "held", "suspended", "stopping"];
export const ENDED = ["succeeded", "failed", "killed"];
const STEP = 100;
const LIMIT_MAX = 10_000;

export function view({ main, query, again }) {
  const chosen = { state: query.get("state") ?? "", text: query.get("text") ?? "", queue: query.get("queue") ?? "", sort: query.get("sort") ?? "", limit: STEP };
  const changed = () => {
    const params = new URLSearchParams(Object.entries({ state: chosen.state, text: chosen.text, queue: chosen.queue, sort: chosen.sort }).filter(([, value]) => value));
    history.replaceState(null, "", ofRecording(`/jobs${params.size ? `?${params}` : ""}`));
    again();
  };
  const states = make("select", { "aria-label": "State", change: (event) => { chosen.state = event.target.value; changed(); } },
    make("option", { value: "" }, "all states"),
    make("option", { value: OPEN.join() }, "not ended"),
    make("option", { value: ENDED.join() }, "ended"),
    [...OPEN, ...ENDED].map((name) => make("option", { value: name }, name)));
  states.value = chosen.state;
  const text = make("input", { type: "search", placeholder: "ID, name, user or queue", "aria-label": "Filter", value: chosen.text,
    input: (event) => { chosen.text = event.target.value; changed(); } });
  const sorting = {
    get by() { return chosen.sort; },
    choose(field) {
      chosen.sort = field;
      changed();
    },
  };
  const list = make("div");
  main.append(make("h1", {}, chosen.queue ? `Jobs of the queue ${chosen.queue}` : "Jobs"), make("div", { class: "bar" }, text, states), list);
  return {
    title: "Jobs",
    async refresh() {
      const asked = new URLSearchParams({ limit: chosen.limit });
      if (chosen.state) asked.set("state", chosen.state);
      if (chosen.text) asked.set("text", chosen.text);
      if (chosen.queue) asked.set("queue", chosen.queue);
      if (chosen.sort) asked.set("sort", chosen.sort);
      const page = await get(`jobs?${asked}`);
      renew(list, remarks(page), rows(page.items, sorting), under(page, () => { chosen.limit = Math.min(chosen.limit * 10, LIMIT_MAX); again(); }, `jobs?${asked}`));
    },
  };
}

/** Remarks about parts that could not be read. */
export function remarks(page) {
  return page.remarks.map((remark) => make("p", { class: "panel bad" }, `Left out: ${remark}`));
}

/** The number of items, a button for more, and a link that saves the list at a path of the API. */
export function under(page, more, path = null) {
  const words = page.next === null ? `${count(page.total)} in all` : `${count(page.items.length)} of ${count(page.total)} are shown`;
  const isMore = more && page.next !== null && page.items.length < LIMIT_MAX;
  return make("p", { class: "under" }, words, isMore && make("button", { type: "button", click: more }, "Show more"), path !== null && page.total > 0 && csvLink(path));
}

function rows(jobs, sorting) {
  return table("Jobs", [
    ["Job", (job) => link(`/jobs/${job.job}`, job.job), "id", "job"],
    ["State", (job) => state(job.state), null, "state"],
    ["Name", (job) => job.name, "text", "name"],
    ["User", (job) => job.user, null, "user"],
    ["Queue", (job) => queueLink(job.queue), null, "queue"],
    ["Priority", (job) => String(job.priority), "number", "priority"],
    ["Maps", (job) => progress(job.map, "map"), null, "map"],
    ["Reduces", (job) => progress(job.reduce, "reduce"), null, "reduce"],
    ["Submitted", (job) => make("time", { title: utc(job.submitted_millis) }, moment(job.submitted_millis)), null, "submitted"],
    ["Took", (job) => taken(job.submitted_millis, job.ended_millis), "number", "took"],
    ["Left", (job) => about(job.left), "number", "left"],
  ], jobs, "No matching jobs.", sorting);
}
