// The history of a task in sentences: launches, preemptions, naps, ends.

import { bytes, short, span } from "../format.js";

/** The events of a task; times in microseconds. A cause comes before its effect, whatever the clocks of the machines are. */
export function taskEvents({ attempts: all, preemptions, resumes, restores }) {
  const began = (one) => {
    const restore = restores.find((known) => known.attempt === one.attempt);
    const from = restore ? `, ${restore.refused ? `from the beginning instead of from ${restore.from}: ${restore.refused}` : `continuing from ${restore.from} with ${span(restore.work_saved_millis)} of work`}` : "";
    const starting = one.started_micros === null ? "" : `; its work began ${short(one.started_micros - one.launched_micros)} later`;
    return { at: one.launched_micros, what: `${one.attempt} was launched on ${one.worker} (${one.worker_name})${from}${starting}` };
  };
  const wanted = (one) => ({
    at: one.requested_micros,
    what: `${one.by} wanted its slot${one.beneficiary ? ` for ${one.beneficiary}` : ""}, by ${one.primitive}: ${one.reason}`,
  });
  const taken = (one) => {
    const held = one.checkpoint_bytes ? `, ${bytes(one.checkpoint_bytes)} in files` : one.resident_bytes ? `, ${bytes(one.resident_bytes)} kept in memory` : "";
    const lost = one.work_lost_millis ? `, ${span(one.work_lost_millis)} of it lost` : "";
    const to = one.used_by ? `; the slot went to ${one.used_by}` : one.unused ? `; the slot was not used: ${one.unused}` : "";
    return { at: one.freed_micros, what: `${one.attempt} was ${one.end} after ${span(one.active_millis)} of work${held}${lost}${to}` };
  };
  const resumed = (one) => ({
    at: one.resumed_micros ?? one.ordered_micros,
    what: `${one.attempt} ${one.resumed_micros === null ? "waits to resume" : "resumed"} after a nap of ${span(one.suspended_millis)}`,
  });
  const over = (one) => ({ at: one.ended_micros, what: `${one.attempt} ended: ${one.end}` });
  const map = (known, key, form) => new Map(known.map((one) => [key(one), { ...form(one), causes: [] }]));
  const self = (one) => one;
  const begins = map(all, (one) => one.attempt, began);
  const requests = map(preemptions, self, wanted);
  const takings = map(preemptions.filter((one) => one.freed_micros !== null), self, taken);
  const returns = map(resumes, self, resumed);
  const ends = map(all.filter((one) => one.ended_micros !== null), (one) => one.attempt, over);
  const causes = (event, ...found) => event?.causes.push(...found.filter(Boolean));
  const takingsOf = (attempt) => [...takings].filter(([one]) => one.attempt === attempt);

  for (const [one, request] of requests) {
    causes(request, begins.get(one.attempt));
    causes(takings.get(one), request);
  }
  for (const [one, taking] of takings) if (one.end !== "suspended") causes(ends.get(one.attempt), taking);
  for (const [one, resumed] of returns) {
    const before = takingsOf(one.attempt).filter(([known]) => known.end === "suspended" && known.requested_micros < one.ordered_micros);
    causes(resumed, before.at(-1)?.[1]);
  }
  for (const one of restores) causes(begins.get(one.attempt), ends.get(one.from), ...takingsOf(one.from).map(([, taking]) => taking));
  for (const one of all) {
    causes(ends.get(one.attempt), begins.get(one.attempt));
    for (const other of all) {
      if (other === one || other.ended_micros === null) continue;
      // A retry starts at the end of the previous attempt; the loser of a race ends with the winner.
      const isNext = all.indexOf(other) < all.indexOf(one);
      if (isNext && isNear(one.launched_micros, other.ended_micros)) causes(begins.get(one.attempt), ends.get(other.attempt));
      if (other.outcome === "succeeded" && one.ended_micros !== null && one.outcome !== "succeeded" && isNear(one.ended_micros, other.ended_micros)) causes(ends.get(one.attempt), ends.get(other.attempt));
    }
  }
  return inOrder([begins, requests, takings, returns, ends].flatMap((known) => [...known.values()]));
}

/** Times come from several clocks, some of them in whole milliseconds. */
const NEAR_MICROS = 50_000;

function isNear(one, other) {
  return Math.abs(one - other) <= NEAR_MICROS;
}

/** Sorts by time, with causes before their effects. */
function inOrder(events) {
  const place = (event) => {
    if (event.place) return event.place;
    // In a cycle of causes, time decides.
    event.place = { at: event.at, depth: 0 };
    for (const cause of event.causes) {
      const { at, depth } = place(cause);
      if (at > event.place.at) event.place = { at, depth: depth + 1 };
      else if (at === event.place.at) event.place.depth = Math.max(event.place.depth, depth + 1);
    }
    return event.place;
  };
  events.forEach(place);
  return events.sort((one, other) => one.place.at - other.place.at || one.place.depth - other.place.depth);
}
