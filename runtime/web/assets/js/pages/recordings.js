// The recordings of a server, for example runs of a simulation, and the choice of two to compare.

import { csvLink, link, make, renew, table } from "../elements.js";
import { count, moment, span } from "../format.js";
import { get } from "../net.js";
import { WhatIfs } from "./what_if.js";

export function view({ main, go, again }) {
  const list = make("div");
  const whatIfs = new WhatIfs({ again });
  const chosen = [];
  const button = make("button", { type: "button", disabled: true, click: () => go(address(chosen)) }, "Compare two");
  const words = make("span", { class: "quiet" }, "Choose two, or look into one.");
  const tell = () => {
    button.disabled = chosen.length !== 2;
    words.textContent = chosen.length === 2 ? `${chosen[0]} on the left, ${chosen[1]} on the right` : "Choose two, or look into one.";
  };
  const choose = ({ target: { value, checked } }) => {
    if (checked) chosen.push(value);
    else chosen.splice(chosen.indexOf(value), 1);
    tell();
  };
  const bar = make("div", { class: "bar", hidden: true }, button, words);
  main.append(make("h1", {}, "Recordings"), bar, list, whatIfs.element);
  return {
    title: "Recordings",
    leave: () => whatIfs.leave(),
    // Only what-ifs add or remove recordings.
    get isLive() {
      return whatIfs.isOpen;
    },
    async refresh() {
      const { capabilities } = await get("session");
      const known = capabilities.includes("what-if") ? await get("what-if") : null;
      const { items, differing, remarks } = await get("recordings");
      const others = otherSettings(differing);
      if (known) whatIfs.show(known, items);
      bar.hidden = items.length < 2;
      chosen.splice(0, chosen.length, ...chosen.filter((name) => items.some(({ recording }) => recording === name)));
      tell();
      const box = (item) => make("input", {
        type: "checkbox", value: item.recording, checked: chosen.includes(item.recording), "aria-label": `Compare ${item.recording}`, change: choose,
      });
      renew(list, remarks.map((remark) => make("p", { class: "panel bad" }, `Left out: ${remark}`)),
        table("Recordings", [
          ["Compare", box],
          ["Recording", (item) => link(`/jobs?recording=${encodeURIComponent(item.recording)}`, item.recording), "id"],
          items.some(({ kind }) => kind !== items[0].kind) && ["Kind", (item) => item.kind, "id"],
          ["Policy", (item) => item.scheduler ?? "unknown"],
          ["Primitive", (item) => item.primitive ?? "unknown"],
          others.length > 0 && ["Other settings that differ", (item) => settingsOf(item, others), "text"],
          ["Jobs", (item) => jobs(item), "number"],
          ["First submission", (item) => moment(item.from_millis)],
          ["Makespan", (item) => span(item.makespan_millis), "number"],
          ["Sojourn, mean", (item) => span(item.sojourn.mean), "number"],
          ["p95", (item) => span(item.sojourn.p95), "number"],
          ["Slots taken", (item) => count(item.preemptions), "number"],
          ["Work saved", (item) => span(item.work_saved_millis), "number"],
          ["Work lost", (item) => span(item.work_lost_millis), "number"],
        ].filter(Boolean), items, known ? "Results of what-ifs are listed here." : "This server shows a single cluster or history. To show several, run: nap history serve PATH..."),
        items.length > 0 && make("p", { class: "under" }, csvLink("recordings")));
    },
  };
}

/** The settings that differ, without those that have columns of their own. */
export function otherSettings(differing) {
  return differing.filter((name) => name !== "preemption.primitive");
}

/** The values of these settings as lines of a configuration file. */
function settingsOf({ settings }, names) {
  return names.map((name) => make("div", {}, make("code", {}, `${name} = ${settings[name] ?? "default"}`)));
}

function jobs({ jobs, failed, killed }) {
  const others = [failed && `${count(failed)} failed`, killed && `${count(killed)} killed`].filter(Boolean);
  return others.length ? `${count(jobs)} (${others.join(", ")})` : count(jobs);
}

function address([left, right]) {
  return `/recordings/compare?${new URLSearchParams({ left, right })}`;
}
