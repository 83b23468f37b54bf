// One worker: timeline of its slots, suspended attempts, state changes.

import { facts, link, make, renew, sentence, state, table } from "../elements.js";
import { bytes, count, moment, span, taken, utc } from "../format.js";
import { get, mayOrder } from "../net.js";
import { orderButton, withoutOrders } from "../orders.js";
import { getTimeline } from "../timeline/columns.js";
import { Timeline } from "../timeline/timeline.js";
import { under } from "./jobs.js";
import { logButton } from "./logs.js";
import { became, drain, speed } from "./workers.js";

const WINDOW_MILLIS = 600_000;
const CHANGES_MAX = 100;
const FAILURES_MAX = 100;
const STREAMS = ["stderr", "stdout"];

export function view({ main, parts, again }) {
  const [, id] = parts;
  const head = make("div");
  const orders = make("div", { class: "bar" });
  const below = make("div");
  const slots = (window) => `timeline?${new URLSearchParams({ worker: id, ...window })}`;
  const closer = (from, until) => getTimeline(slots({ from, until }), { isKept: false });
  const picture = new Timeline({ label: `Slots of ${id}, the last 10 minutes`, followsMillis: WINDOW_MILLIS, closer });
  main.append(head, orders, make("h2", {}, "Slots, the last 10 minutes"), picture.element, below);
  let hasJumped = false;
  return {
    title: id,
    leave: () => picture.leave(),
    repaint: () => picture.draw(),
    async refresh() {
      const [worker, session] = [await get(`workers/${id}`), await get("session")];
      const performance = (await get("workers/performance?limit=10000")).items.find((one) => one.worker === id);
      renew(head, heading(worker, performance));
      if (session.is_live) renew(orders, mayOrder() ? buttons(worker, again) : withoutOrders());
      picture.show(await getTimeline(slots({})));
      const ofChanges = `workers/changes?worker=${id}&limit=${CHANGES_MAX}&from=0`;
      const changes = await get(ofChanges);
      const ofFailures = `workers/failures?worker=${id}&limit=${FAILURES_MAX}`;
      const failed = await get(ofFailures);
      renew(below, make("h2", { id: "failed" }, "Failed attempts of the last day"), failures(failed.items), failed.total > 0 && under(failed, null, ofFailures),
        make("h2", {}, "Suspended attempts"), kept(worker.suspended),
        make("h2", {}, "State changes"), became(changes, ofChanges));
      if (location.hash === "#failed" && !hasJumped) below.firstChild.scrollIntoView();
      hasJumped = true;
    },
  };
}

/** Failed attempts with their logs. */
function failures(items) {
  return table("Failed attempts", [
    ["Attempt", (failure) => sentence(failure.attempt), "id"],
    ["Job", (failure) => link(`/jobs/${failure.job}`, failure.job_name), "text"],
    ["Ended", (failure) => make("time", { title: utc(failure.ended_millis) }, moment(failure.ended_millis)), "id"],
    ["Took", (failure) => taken(failure.launched_millis, failure.ended_millis), "number"],
    ["Why", (failure) => sentence(failure.end), "text reason"],
    ["Log", (failure) => STREAMS.map((stream) => logButton(failure.attempt, stream)), "id"],
  ], items, "No attempt failed here in the last day.");
}

function heading(worker, performance) {
  const used = ({ used: held, slots }) => `${count(held)} of ${count(slots)} in use`;
  return [
    make("h1", {}, `${worker.worker} `, make("span", { class: "quiet" }, worker.name, " · ", link("/workers", "all workers"))),
    facts([
      ["State", state(worker.state)],
      ["Why", worker.reason ? sentence(worker.reason) : null],
      ["Host", worker.host],
      ["Rack", worker.rack],
      ["Excluded for", worker.state.startsWith("excluded") && performance?.failing.length > 0 ? sentence(performance.failing.join(", ")) : null],
      ["Failures", performance && performance.failed > 0 ? `${count(performance.failed)} in the last hour` : null],
      ["Speed", performance && performance.speed !== null ? make("span", {}, speed(performance), " that of the other workers at the same work") : null],
      ["Map slots", used(worker.map)],
      ["Reduce slots", used(worker.reduce)],
      ["Free memory", worker.free_bytes === null ? null : bytes(worker.free_bytes)],
      ["Free swap", worker.swap_free_bytes === null ? null : bytes(worker.swap_free_bytes)],
      ["Free disk", worker.disk_free_bytes === null ? null : bytes(worker.disk_free_bytes)],
      ["Memory of its attempts", worker.groups_bytes === null ? null : `${bytes(worker.groups_bytes)}, with the files that they cache`],
      ["Isolation", worker.isolation],
      ["Last heartbeat", worker.gone_millis === null ? `${span(worker.silent_millis)} ago` : `gone at ${moment(worker.gone_millis)}`],
    ]),
  ];
}

function kept(suspended) {
  return table("Suspended attempts", [
    ["Attempt", (held) => sentence(held.attempt), "id"],
    ["In memory", (held) => bytes(held.resident_bytes), "number"],
    ["In swap", (held) => bytes(held.swapped_bytes), "number"],
  ], suspended, "No suspended attempts.");
}

function buttons(worker, again) {
  if (worker.state.startsWith("up")) return [drain(worker, again), handBack(worker, again)];
  if (!worker.state.startsWith("draining")) return [];
  return orderButton({
    label: "Keep", title: `Keep ${worker.worker}?`, about: "It is given work again.", path: `workers/${worker.worker}/undrain`, done: again,
  });
}

function handBack(worker, again) {
  return orderButton({
    label: "Hand back", title: `Have ${worker.worker} hand back its work?`,
    about: "Its attempts are checkpointed or killed and continue on other workers; then it leaves.",
    path: `workers/${worker.worker}/drain`, more: { hand_back: true }, done: again, isBad: true,
  });
}
