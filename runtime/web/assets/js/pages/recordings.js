// The histories that a server shows side by side, such as runs of a simulation: what each comes to, and two of them to compare.
// Owns the list. Does not own the comparison (comparison).

import { link, make, renew, table } from "../elements.js";
import { count, moment, span } from "../format.js";
import { get } from "../net.js";

export function view({ main, go }) {
  const list = make("div");
  const chosen = [];
  const button = make("button", { type: "button", disabled: true, click: () => go(address(chosen)) }, "Compare two");
  const words = make("span", { class: "quiet" }, "Choose two, or look into one.");
  const choose = (event) => {
    const { value, checked } = event.target;
    if (checked) chosen.push(value);
    else chosen.splice(chosen.indexOf(value), 1);
    button.disabled = chosen.length !== 2;
    words.textContent = chosen.length === 2 ? `${chosen[0]} on the left, ${chosen[1]} on the right` : "Choose two, or look into one.";
  };
  main.append(make("h1", {}, "Recordings"), make("div", { class: "bar" }, button, words), list);
  return {
    title: "Recordings",
    isLive: false,
    async refresh() {
      const { items, remarks } = await get("recordings");
      const box = (item) => make("input", { type: "checkbox", value: item.recording, "aria-label": `Compare ${item.recording}`, change: choose });
      renew(list, remarks.map((remark) => make("p", { class: "panel bad" }, `Left out: ${remark}`)),
        table([
          ["", box],
          ["Recording", (item) => link(`/jobs?recording=${encodeURIComponent(item.recording)}`, item.recording), "id"],
          ["Policy", (item) => item.scheduler ?? "unknown"],
          ["Jobs", (item) => jobs(item), "number"],
          ["First submission", (item) => moment(item.from_millis)],
          ["Makespan", (item) => span(item.makespan_millis), "number"],
          ["Sojourn, mean", (item) => span(item.sojourn.mean), "number"],
          ["p95", (item) => span(item.sojourn.p95), "number"],
          ["Slots taken", (item) => count(item.preemptions), "number"],
          ["Work saved", (item) => span(item.work_saved_millis), "number"],
          ["Work lost", (item) => span(item.work_lost_millis), "number"],
        ], items, "One cluster or history alone is shown here. Several are: nap history serve PATH..."));
    },
  };
}

function jobs({ jobs, failed, killed }) {
  const others = [failed && `${count(failed)} failed`, killed && `${count(killed)} killed`].filter(Boolean);
  return others.length ? `${count(jobs)} (${others.join(", ")})` : count(jobs);
}

function address([left, right]) {
  return `/recordings/compare?${new URLSearchParams({ left, right })}`;
}
