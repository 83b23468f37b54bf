// A task: its life as a bar and in words, what was taken from it, its attempts, and the logs of the newest as they grow.
// Owns what stands there. Does not own pictures (timeline), lists (tabs) nor logs (logs).

import { facts, link, make, renew, sentence, state, table } from "../elements.js";
import { bytes, count, moment, short, span, utc } from "../format.js";
import { get, mayOrder } from "../net.js";
import { getTimeline } from "../timeline/columns.js";
import { Timeline } from "../timeline/timeline.js";
import { Log } from "./logs.js";
import { attempts, ledger, taskOrders } from "./tabs.js";
import { why } from "./why.js";

const STREAMS = ["stdout", "stderr"];

export function view({ main, parts, again }) {
  const [, job, id] = parts;
  const head = make("div");
  const orders = make("div", { class: "bar" });
  const life = make("div");
  const below = make("div");
  const logs = make("section", { hidden: true });
  const picture = new Timeline({ label: `The life of ${id}`, byTask: true, own: Number(job.slice(4)) });
  main.append(head, orders, picture.element, life, below, logs);
  let newest = null;
  const shown = {
    title: id,
    isLive: true,
    leave: () => picture.leave(),
    repaint: () => picture.draw(),
    async refresh() {
      const [task, of, session] = [await get(`tasks/${id}`), await get(`jobs/${job}`), await get("session")];
      const { history } = task;
      shown.isLive = session.is_live && of.ended_millis === null;
      const isOpen = shown.isLive && task.state !== "done";
      renew(head, heading(task, of), why(isOpen ? (await get(`tasks/${id}/explain`)).reasons : []));
      if (mayOrder() && isOpen) renew(orders, taskOrders(task, again));
      else orders.replaceChildren();
      picture.show(await getTimeline(`tasks/${id}/timeline`));
      renew(life, make("h2", {}, "What happened to it"), table([
        ["When", ({ at }) => make("time", { title: utc(at / 1000) }, moment(at / 1000)), "id"],
        ["What", ({ what }) => sentence(what), "text"],
      ], happened(history), "Nothing of it was begun yet."));
      renew(below,
        history.preemptions.length > 0 && [make("h2", {}, "Slots that were taken from it"), ledger(history.preemptions, "")],
        make("h2", {}, "Attempts"), attempts([...history.attempts].reverse(), of));
      const main = mainAttempt(task);
      // A history has what attempts printed that failed, behind the buttons of the list, and no more.
      if (session.is_live && last && last.attempt !== newest?.attempt) {
        newest = { attempt: last.attempt, logs: STREAMS.map((stream) => new Log(last.attempt, stream)), isOver: false };
        logs.hidden = false;
        logs.replaceChildren(...newest.logs.flatMap((log, at) => [make("h2", {}, `${STREAMS[at]} of ${last.attempt}`), log.element]));
      }
      if (newest && !newest.isOver) {
        // What was written up to the end is read once after it.
        newest.isOver = last.ended_millis !== null;
        await Promise.all(newest.logs.map((log) => log.readOn()));
      }
    },
  };
  return shown;
}

function heading(task, job) {
  const [live] = task.live;
  const last = task.history.attempts.at(-1);
  return [
    make("h1", {}, task.task, " ", make("span", { class: "quiet" }, "of ", link(`/jobs/${job.job}/tasks`, `${job.job} ${job.name}`))),
    facts([
      ["State", state(task.state)],
      ["Attempts", count(task.history.attempts.length)],
      ["Worker", live || last ? sentence(`${(live ?? last).worker}${last ? ` (${last.worker_name})` : ""}`) : null],
      ["Done", live?.bytes_total ? `${Math.floor((100 * live.bytes_done) / live.bytes_total)} % of ${bytes(live.bytes_total)}` : null],
    ]),
  ];
}

/** Its life in words, oldest first; moments in microseconds. */
function happened({ attempts: all, preemptions, resumes, restores }) {
  const began = (one) => {
    const restore = restores.find((known) => known.attempt === one.attempt);
    const from = restore ? `, ${restore.refused ? `anew instead of from ${restore.from}: ${restore.refused}` : `to go on from ${restore.from} with ${span(restore.work_saved_millis)} of work`}` : "";
    const starting = one.started_micros === null ? "" : `; it began to work ${short(one.started_micros - one.launched_micros)} later`;
    return { at: one.launched_micros, what: `${one.attempt} was launched on ${one.worker} (${one.worker_name})${from}${starting}` };
  };
  const wanted = (one) => ({
    at: one.requested_micros,
    what: `${one.by} wanted its slot${one.beneficiary ? ` for ${one.beneficiary}` : ""}, by ${one.primitive}: ${one.reason}`,
  });
  const taken = (one) => {
    const held = one.checkpoint_bytes ? `, ${bytes(one.checkpoint_bytes)} in files` : one.resident_bytes ? `, ${bytes(one.resident_bytes)} kept in memory` : "";
    const lost = one.work_lost_millis ? `, ${span(one.work_lost_millis)} of it lost` : "";
    const to = one.used_by ? `; the slot went to ${one.used_by}` : "";
    return { at: one.freed_micros, what: `${one.attempt} was ${one.end} after ${span(one.active_millis)} of work${held}${lost}${to}` };
  };
  const wentOn = (one) => ({
    at: one.resumed_micros ?? one.ordered_micros,
    what: `${one.attempt} ${one.resumed_micros === null ? "is to go on" : "went on"} after a nap of ${span(one.suspended_millis)}`,
  });
  const over = (one) => ({ at: one.ended_micros, what: `${one.attempt} ended: ${one.end}` });
  return [
    ...all.map(began), ...preemptions.map(wanted), ...preemptions.filter((one) => one.freed_micros !== null).map(taken),
    ...resumes.map(wentOn), ...all.filter((one) => one.ended_micros !== null).map(over),
  ].sort((one, other) => one.at - other.at);
}
