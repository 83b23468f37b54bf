// One queue: its slots now and over time, its jobs and users, and the slots that it lost and got.

import { facts, link, make, progress, queueLink, renew, state, table } from "../elements.js";
import { count, moment, span, taken, utc } from "../format.js";
import { get, ofRecording } from "../net.js";
import { LENGTHS, since } from "./preemptions.js";
import { held } from "./queues.js";
import { shares } from "./shares.js";

const JOBS_MAX = 20;
const FLOWS_MAX = 1000;

export function view({ main, parts, query, again }) {
  const name = decodeURIComponent(parts[1]);
  const head = make("div");
  const pictures = make("div");
  const below = make("div");
  let last = query.get("last") ?? "";
  const times = make("select", { "aria-label": "Times", change: (event) => {
    last = event.target.value;
    history.replaceState(null, "", ofRecording(`${location.pathname}${last ? `?last=${last}` : ""}`));
    again();
  } }, [["", "usual window"], ...LENGTHS].map(([value, words]) => make("option", { value }, words)));
  times.value = last;
  main.append(head, make("h2", {}, "Slots over time"), make("div", { class: "bar" }, times), pictures, below);
  return {
    title: `Queue ${name}`,
    async refresh() {
      const [queue, session] = [await get(`queues/${encodeURIComponent(name)}`), await get("session")];
      const [, , millis] = LENGTHS.find(([length]) => length === (last || (session.is_live ? "1h" : "all"))) ?? LENGTHS[1];
      const from = millis === null ? 0 : since(millis);
      renew(head, heading(queue));
      const whole = await get(`shares?from=${from}`);
      const own = [name, ...queue.children];
      renew(pictures, shares({ ...whole, queues: whole.queues.filter((one) => own.includes(one.queue)) }, queue.now ? [queue.now] : [], { isWanted: true }));
      const jobs = await get(`jobs?${new URLSearchParams({ queue: name, limit: JOBS_MAX })}`);
      const flows = await get(`preemptions/flows?${new URLSearchParams({ queue: name, from, limit: FLOWS_MAX })}`);
      const each = new URLSearchParams({ queue: name, last });
      renew(below, make("h2", {}, "Jobs"), table("Jobs", JOBS, jobs.items, queue.children.length > 0 ? "Its jobs are in its child queues." : "No jobs in this queue."),
        jobs.next !== null && make("p", { class: "under" }, link(`/jobs?queue=${encodeURIComponent(name)}`, `All ${count(jobs.total)} jobs of this queue`)),
        make("h2", {}, "Users"), table("Users", USERS, queue.users, "No jobs in this queue."),
        make("h2", {}, "Slots that it lost and got"), moved(flows.items, name),
        flows.total > 0 && make("p", { class: "under" }, link(`/preemptions?${each}`, "Each of these preemptions")));
    },
  };
}

function heading({ queue, scheduler, now, children }) {
  const list = (queues) => queues.flatMap((one, at) => [at > 0 && ", ", queueLink(one)]);
  const most = (slots) => [slots.maximum !== null && `at most ${count(slots.maximum)}`, `${count(slots.wanted)} more wanted`].filter(Boolean).join(", ");
  const slots = (kind) => now && make("span", {}, held(now[kind], kind), ` in use, ${most(now[kind])}`);
  return [
    make("h1", {}, `Queue ${queue}`),
    make("p", { class: "under" }, link("/queues", "All queues")),
    facts([
      ["Scheduler", scheduler === "unknown" ? null : scheduler],
      ["Parent", now?.parent ? queueLink(now.parent) : null],
      ["Child queues", children.length > 0 ? make("span", {}, list(children)) : null],
      ["Weight", now?.weight ?? null],
      ["Map slots", slots("map")],
      ["Reduce slots", slots("reduce")],
      ["Jobs", now && `${count(now.running)} running, ${count(now.waiting)} waiting`],
      ["Remark", now?.remark],
    ]),
  ];
}

/** Flows of slots between this queue and others. */
function moved(flows, name) {
  const other = (flow) => (flow.from === name ? flow.to : flow.from);
  return table("Slots lost and got", [
    ["Moved", (flow) => (flow.from === name ? (flow.to === name ? "moved within" : "lost to") : "got from"), "id"],
    ["Queue", (flow) => (other(flow) === null ? "nobody" : queueLink(other(flow))), "text"],
    ["Slots", (flow) => count(flow.count), "number"],
    ["By", (flow) => flow.primitive],
    ["Without a slot", (flow) => span(flow.slot_millis), "number"],
    ["Saved", (flow) => span(flow.work_saved_millis), "number"],
    ["Lost", (flow) => span(flow.work_lost_millis), "number"],
  ], flows, "No slot was taken from or for this queue.");
}

const USERS = [
  ["User", (user) => user.user, "text"],
  ["Map slots", (user) => count(user.map_slots), "number"],
  ["Reduce slots", (user) => count(user.reduce_slots), "number"],
  ["Suspended", (user) => count(user.suspended), "number"],
  ["Jobs running", (user) => count(user.running), "number"],
  ["Jobs waiting", (user) => count(user.waiting), "number"],
  ["Jobs ended", (user) => count(user.ended), "number"],
];

const JOBS = [
  ["Job", (job) => link(`/jobs/${job.job}`, job.job), "id"],
  ["Name", (job) => job.name, "text"],
  ["User", (job) => job.user],
  ["State", (job) => state(job.state)],
  ["Maps", (job) => progress(job.map, "map")],
  ["Reduces", (job) => progress(job.reduce, "reduce")],
  ["Submitted", (job) => make("time", { title: utc(job.submitted_millis) }, moment(job.submitted_millis))],
  ["Took", (job) => taken(job.submitted_millis, job.ended_millis), "number"],
];
