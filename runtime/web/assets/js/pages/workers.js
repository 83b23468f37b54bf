// The list of workers, with orders to drain them.

import { csvLink, link, make, renew, sentence, state, table } from "../elements.js";
import { bytes, count, moment, span, utc } from "../format.js";
import { get, mayOrder } from "../net.js";
import { orderButton } from "../orders.js";

/** Workers of at most this speed are marked. */
const SLOW = 0.67;

export function view({ main, again }) {
  const list = make("div");
  const changes = make("div");
  main.append(make("h1", {}, "Workers"), list, make("h2", {}, "State changes"), changes);
  return {
    title: "Workers",
    async refresh() {
      const [page, session] = [await get("workers?limit=10000"), await get("session")];
      const known = new Map((await get("workers/performance?limit=10000")).items.map((one) => [one.worker, one]));
      // The state changes below have those that left.
      const present = page.items.filter((worker) => !worker.state.startsWith("left")).sort((one, other) => (one.gone_millis ?? 0) - (other.gone_millis ?? 0));
      const racks = new Set(page.items.map((worker) => worker.rack));
      const columns = [
        ["Worker", (worker) => sentence(worker.worker), "id"],
        ["Name", (worker) => worker.name, "text"],
        ["Host", (worker) => worker.host, "id"],
        racks.size > 1 && ["Rack", (worker) => worker.rack],
        ["State", (worker) => stateLink(worker)],
        ["Failures/h", (worker) => failures(worker.worker, known.get(worker.worker)), "number"],
        ["Speed", (worker) => speed(known.get(worker.worker)), "number"],
        ["Maps", (worker) => `${worker.map.used}/${worker.map.slots}`, "number"],
        ["Reduces", (worker) => `${worker.reduce.used}/${worker.reduce.slots}`, "number"],
        ["Free memory", size("free_bytes"), "number"],
        present.some((worker) => worker.swap_free_bytes !== null) && ["Free swap", size("swap_free_bytes"), "number"],
        ["Free disk", size("disk_free_bytes"), "number"],
        present.some((worker) => worker.groups_bytes !== null) && ["Attempts use", size("groups_bytes"), "number"],
        present.some((worker) => worker.suspended.length > 0) && ["Suspended", (worker) => worker.suspended.map(suspended)],
        ["Last heartbeat", (worker) => (worker.gone_millis === null ? `${span(worker.silent_millis)} ago` : `gone at ${moment(worker.gone_millis)}`), "id"],
        present.some(why) && ["Why", why, "text reason"],
      ].filter(Boolean);
      if (mayOrder() && session.is_live) columns.push(["Order", (worker) => (worker.state.startsWith("up") ? drain(worker, again) : ""), "id"]);
      const ofChanges = `workers/changes?limit=100${session.is_live ? "" : "&from=0"}`;
      renew(changes, became(await get(ofChanges), ofChanges));
      renew(list, table("Workers", columns, present, session.is_live ? "No worker has joined. Start one with: nap worker" : "A history does not record the list of workers."),
        page.total > 0 && make("p", { class: "under" }, csvLink("workers?limit=10000"), csvLink("workers/performance?limit=10000", "Save speeds and failures as csv")));
    },
  };
}

/** The cell of a number of bytes that may be unknown. */
function size(name) {
  return (worker) => (worker[name] === null ? "–" : bytes(worker[name]));
}

/** The state; of an excluded worker, a link to the attempts that failed there. */
function stateLink({ worker, state: words }) {
  const [name] = words.split(", ");
  return name === "excluded" ? link(`/workers/${worker}#failed`, state(name)) : state(name);
}

/** Why a worker is in its state: the reason, or the remarks after the state. */
function why({ reason, state: words }) {
  return reason ?? words.split(", ").slice(1).join(", ");
}

/** Failures per hour, as a link to the failed attempts. */
function failures(id, performance) {
  if (!performance || performance.failed === 0) return "0";
  return link(`/workers/${id}#failed`, performance.failures_per_hour.toLocaleString("en-GB", { maximumFractionDigits: 1 }));
}

/** Speed relative to the other workers. */
export function speed(performance) {
  if (!performance || performance.speed === null) return "–";
  const words = `${performance.speed.toLocaleString("en-GB", { maximumFractionDigits: 1, minimumFractionDigits: 1 })}\u00d7`;
  const title = "How many times as fast as the other workers at maps and reduces of the same jobs";
  return make("span", { title, class: performance.speed <= SLOW ? "bad-words" : null }, words);
}

/** State changes, newest first. */
export function became({ items, total, remarks }, path) {
  const rows = table("State changes", [
    ["When", (change) => make("time", { title: utc(change.at_millis) }, moment(change.at_millis)), "id"],
    ["Worker", (change) => sentence(change.worker), "id"],
    ["Name", (change) => change.name, "text"],
    ["Host", (change) => change.host],
    ["Became", (change) => state(change.state)],
    ["Slots", (change) => `${count(change.map_slots)} + ${count(change.reduce_slots)}`, "number"],
    ["Why", (change) => change.reason ?? "", "text reason"],
  ], items, "No changes in the last day.");
  const under = [...remarks, ...(total > items.length ? [`${count(items.length)} of ${count(total)} are shown`] : [])];
  return [rows, items.length > 0 && make("p", { class: "under" }, under.join("; "), csvLink(path))];
}

/** The memory of a suspended attempt, resident and swapped. */
function suspended({ attempt, resident_bytes: resident, swapped_bytes: swapped }) {
  return make("div", {}, sentence(`${attempt} ${bytes(resident)}${swapped > 0 ? `, ${bytes(swapped)} in swap` : ""}`));
}

/** A button that drains a worker. */
export function drain(worker, again) {
  return orderButton({
    label: "Drain",
    title: `Drain ${worker.worker}?`,
    about: "It gets no new work, and leaves once its work and its map outputs are no longer needed.",
    path: `workers/${worker.worker}/drain`,
    done: again,
  });
}
