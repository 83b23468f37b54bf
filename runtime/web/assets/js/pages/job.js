// One job: progress, reasons why it waits, orders, and tabs.

import { facts, link, make, progress, queueLink, renew, sentence, state } from "../elements.js";
import { about, moment, span, taken, utc } from "../format.js";
import { get, mayOrder, ofRecording } from "../net.js";
import { orderButton, withoutOrders } from "../orders.js";
import { findings } from "./findings.js";
import { TABS } from "./tabs.js";
import { why } from "./why.js";

export function view({ main, parts, query, go, again }) {
  const [, id, asked] = parts;
  const named = asked === "attempts" ? "tasks" : asked;
  // An address of earlier versions.
  if (asked === "attempts") history.replaceState(null, "", location.pathname.replace(/attempts$/, "tasks") + location.search);
  const [name, tab] = TABS.find(([known]) => known === (named ?? "timeline")) ?? TABS[0];
  const head = make("div");
  const orders = make("div", { class: "bar" });
  const tabs = make("nav", { class: "tabs", "aria-label": "About this job" }, TABS.map(([known, { label }]) => {
    const anchor = link(`/jobs/${id}/${known}`, label);
    if (known === name) anchor.setAttribute("aria-current", "page");
    return anchor;
  }));
  const place = make("div");
  main.append(head, orders, tabs, place);
  const latest = {};
  /** What the attempt that failed the job printed last; unknown before it is asked for. */
  let printed = null;
  const content = tab.make({ id, place, query, again });
  const shown = {
    title: id,
    isLive: true,
    leave: () => content.leave?.(),
    repaint: () => content.repaint?.(),
    async refresh() {
      const [job, session] = [await get(`jobs/${id}`), await get("session")];
      const hasEnded = job.ended_millis !== null;
      const explained = await get(`jobs/${id}/explain`);
      if (job.state === "failed" && printed === null) printed = await get(`jobs/${id}/last-stderr`);
      latest.job = job;
      shown.title = `${id} ${job.name}`;
      shown.isLive = session.is_live && !hasEnded;
      renew(head, heading(job), reasons(job, hasEnded ? [] : explained.reasons, printed), findings(explained.findings));
      if (mayOrder() && session.is_live) renew(orders, buttons(latest, { go, again }));
      else if (session.is_live) renew(orders, withoutOrders());
      else orders.replaceChildren();
      await content.refresh(job);
    },
  };
  return shown;
}

function heading(job) {
  const parts = job.parts.length;
  const records = job.parts.reduce((sum, part) => sum + part.records, 0);
  return [
    make("h1", {}, `${job.job} `, make("span", { class: "quiet" }, job.name)),
    facts([
      ["State", state(job.state)],
      ["Maps", progress(job.map, "map")],
      ["Reduces", progress(job.reduce, "reduce")],
      ["User, queue", make("span", {}, `${job.user}, `, queueLink(job.queue), `, priority ${job.priority}`)],
      ["Submitted", make("time", { title: utc(job.submitted_millis) }, moment(job.submitted_millis))],
      [job.ended_millis === null ? "Elapsed" : "Took", taken(job.submitted_millis, job.ended_millis)],
      ["Left", remaining(job)],
      ["Output", make("code", {}, job.output)],
      ["Parts", parts ? `${parts}, ${records.toLocaleString("en-GB")} records` : null],
    ]),
  ];
}

function remaining({ left, state: word, ended_millis: ended }) {
  if (ended !== null) return null;
  if (!left) return word === "running" ? "unknown" : `unknown while ${word}`;
  const [least, most] = [span(left.least_millis), span(left.most_millis)];
  return least === most ? about(left) : `${about(left)} (${least} to ${most})`;
}

function reasons(job, found, printed) {
  if (!job.reason || job.ended_millis === null) return why(found);
  return make("div", { class: "panel bad" }, sentence(job.reason),
    printed?.line && [make("p", { class: "quiet" }, "The last line that ", sentence(printed.attempt), " printed to stderr:"), make("pre", { class: "last-line" }, printed.line)]);
}

function buttons(latest, { go, again }) {
  const { job } = latest;
  const button = (label, word, about, more = {}) =>
    orderButton({ label, title: `${label} ${job.job}?`, about, path: `jobs/${job.job}/${word}`, done: again, ...more });
  if (job.ended_millis !== null) {
    const about = "The same program, inputs and settings become a new job. Its output must not exist, unless the job overwrites it.";
    return [button("Rerun", "rerun", about, { form: () => otherOutput(job), done: ({ ordered }) => go(ofRecording(`/jobs/${ordered}`)) })];
  }
  const suspend = job.state === "suspended"
    ? button("Resume", "resume", "The job gets slots again as its queue allows.")
    : button("Suspend", "suspend", "Its running tasks are stopped where they are, and none are started until it is resumed. No work is lost.");
  const hold = job.state === "held"
    ? button("Release", "release", "Tasks of the job are started again as its queue allows.")
    : button("Hold", "hold", "Its running tasks finish, and none are started until it is released.");
  // The button outlives this state of the job.
  const change = button("Change", "set", "A higher priority goes first, if the scheduler knows priorities. Tasks that run are not moved.",
    { title: `Change priority or queue of ${job.job}`, form: () => changes(latest.job) });
  return [hold, suspend, change, button("Kill", "kill", "The job ends for good, without output.", { isBad: true })];
}

/** The field of a rerun; the output is sent only if it differs. */
function otherOutput({ output }) {
  const field = make("input", { type: "text", id: "output", required: true, value: output });
  return { fields: [make("label", { for: "output" }, "Output"), field], values: () => (field.value === output ? {} : { output: field.value }) };
}

/** The fields of an order that changes the priority or the queue; it sends only what differs. */
function changes(job) {
  const priority = make("input", { type: "number", id: "priority", required: true, step: "1", min: "-2147483648", max: "2147483647", value: job.priority });
  const queue = make("input", { type: "text", id: "queue", required: true, list: "queues-known", value: job.queue });
  const known = make("datalist", { id: "queues-known" });
  // Names of queues are a convenience; the order itself reports an unknown one.
  get("queues").then(({ queues }) => known.append(...(queues ?? []).map(({ name }) => make("option", { value: name }))), () => {});
  return {
    fields: [make("label", { for: "priority" }, "Priority"), priority, make("label", { for: "queue" }, "Queue"), queue, known],
    values: () => ({
      ...(Number(priority.value) === job.priority ? {} : { priority: Number(priority.value) }),
      ...(queue.value === job.queue ? {} : { queue: queue.value }),
    }),
  };
}
