// One job: progress, reasons why it waits, orders, and tabs.

import { facts, link, make, progress, renew, sentence, state } from "../elements.js";
import { about, moment, span, taken, utc } from "../format.js";
import { get, mayOrder } from "../net.js";
import { orderButton } from "../orders.js";
import { findings } from "./findings.js";
import { TABS } from "./tabs.js";
import { why } from "./why.js";

export function view({ main, parts, query, again }) {
  const [, id, named] = parts;
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
      shown.title = `${id} ${job.name}`;
      shown.isLive = session.is_live && !hasEnded;
      renew(head, heading(job), reasons(job, hasEnded ? [] : explained.reasons), findings(explained.findings));
      if (mayOrder() && shown.isLive) renew(orders, buttons(id, job, again));
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
      ["User, queue", `${job.user}, ${job.queue}, priority ${job.priority}`],
      ["Submitted", make("time", { title: utc(job.submitted_millis) }, moment(job.submitted_millis))],
      [job.ended_millis === null ? "Takes" : "Took", taken(job.submitted_millis, job.ended_millis)],
      ["Left", remaining(job)],
      ["Output", make("code", {}, job.output)],
      ["Parts", parts ? `${parts}, ${records.toLocaleString("en-GB")} records` : null],
    ]),
  ];
}

function remaining({ left, ended_millis: ended }) {
  if (ended !== null) return null;
  if (!left) return "unknown while it waits or has no progress";
  return `${about(left)} (${span(left.least_millis)} to ${span(left.most_millis)})`;
}

function reasons(job, found) {
  if (job.reason && job.ended_millis !== null) return make("div", { class: "panel bad" }, sentence(job.reason));
  return why(found);
}

function buttons(id, job, done) {
  const path = (word) => `jobs/${id}/${word}`;
  const about = {
    suspend: "Its running tasks are stopped where they are, and none are started until it is resumed. No work is lost.",
    kill: "The job ends for good, without output.",
    resume: "The job gets slots again as its queue allows.",
  };
  const button = (label, word, isBad) =>
    orderButton({ label, title: `${label} ${id}?`, about: about[word], path: path(word), done, isBad });
  return [
    job.state === "suspended" ? button("Resume", "resume") : button("Suspend", "suspend"),
    button("Kill", "kill", true),
  ];
}
