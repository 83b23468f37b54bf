// One task: timeline, history in sentences, preemptions, attempts, and the logs of its main attempt.

import { facts, link, make, renew, sentence, state, table } from "../elements.js";
import { bytes, count, moment, utc } from "../format.js";
import { get, mayOrder } from "../net.js";
import { withoutOrders } from "../orders.js";
import { getTimeline } from "../timeline/columns.js";
import { Timeline } from "../timeline/timeline.js";
import { taskEvents } from "./life.js";
import { Log } from "./logs.js";
import { ledger } from "./ledger.js";
import { attempts, taskOrders } from "./tasks.js";
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
  let read = null;
  const shown = {
    title: id,
    isLive: true,
    leave: () => picture.leave(),
    repaint: () => picture.draw(),
    async refresh() {
      const [task, of, session] = [await get(`tasks/${id}`), await get(`jobs/${job}`), await get("session")];
      const { history } = task;
      shown.isLive = session.is_live && of.ended_millis === null;
      const isOpen = shown.isLive && task.state !== "succeeded";
      renew(head, heading(task, of), why(isOpen ? (await get(`tasks/${id}/explain`)).reasons : []));
      if (mayOrder() && isOpen) renew(orders, taskOrders(task, again));
      else if (isOpen) renew(orders, withoutOrders());
      else orders.replaceChildren();
      picture.show(await getTimeline(`tasks/${id}/timeline`));
      renew(life, make("h2", {}, "What happened to it"), table("What happened to it", [
        ["When", ({ at }) => make("time", { title: utc(at / 1000) }, moment(at / 1000)), "id"],
        ["What", ({ what }) => sentence(what), "text reason"],
      ], taskEvents(history), "The task has not been started."));
      renew(below,
        history.preemptions.length > 0 && [make("h2", {}, "Slots that were taken from it"), ledger(history.preemptions, "")],
        make("h2", {}, "Attempts"), attempts([...history.attempts].reverse(), of));
      const main = mainAttempt(task);
      // A history has only logs of failed attempts; they are behind the buttons in the list.
      if (session.is_live && main && main.attempt !== read?.attempt) {
        read = { attempt: main.attempt, logs: STREAMS.map((stream) => new Log(main.attempt, stream)), isOver: false };
        logs.hidden = false;
        logs.replaceChildren(...read.logs.flatMap((log, at) => [make("h2", {}, `${STREAMS[at]} of ${main.attempt}`), log.element]));
      }
      if (read && !read.isOver) {
        // Reads the rest of the log once after the end.
        read.isOver = main.ended_millis !== null;
        await Promise.all(read.logs.map((log) => log.readOn()));
      }
    },
  };
  return shown;
}

/** The successful attempt; without one, the first running attempt, else the last one. */
function mainAttempt({ live, history }) {
  const isAlive = (one) => live.some(({ attempt }) => attempt === one.attempt);
  return history.attempts.find(({ outcome }) => outcome === "succeeded") ?? history.attempts.find(isAlive) ?? history.attempts.at(-1);
}

function heading(task, job) {
  const main = mainAttempt(task);
  const live = task.live.find(({ attempt }) => attempt === main?.attempt);
  const others = task.live.filter((one) => one !== live).map(({ attempt, worker }) => make("div", {}, sentence(`${attempt} on ${worker}, too`)));
  return [
    make("h1", {}, task.task, " ", make("span", { class: "quiet" }, "of ", link(`/jobs/${job.job}/tasks`, `${job.job} ${job.name}`))),
    facts([
      ["State", state(task.state)],
      ["Attempts", count(task.history.attempts.length)],
      [main?.outcome === "succeeded" ? "Done by" : "Attempt", main ? [sentence(`${main.attempt} on ${main.worker} (${main.worker_name})`), others] : null],
      ["Done", live?.bytes_total ? `${Math.floor((100 * live.bytes_done) / live.bytes_total)} % of ${bytes(live.bytes_total)}` : null],
    ]),
  ];
}
