// The ledger: who took which slot from whom.

import { make, sentence, state, table } from "../elements.js";
import { bytes, count, moment, short, span, taken, utc } from "../format.js";
import { get } from "../net.js";

export function preemptions(items) {
  return ledger(items, "No slot of this job was taken.");
}

/** Totals of all preemptions of a job, regardless of the page. */
export async function preemptionTotals(id) {
  const totals = await get(`jobs/${id}/preemptions/totals`);
  if (totals.count === 0) return [];
  const often = totals.count === 1 ? "Once" : `${count(totals.count)} times`;
  return make("p", {}, `${often} a slot was wanted back; ${span(totals.work_saved_millis)} of work was saved, ${span(totals.work_lost_millis)} lost.`);
}

/** Entries of the ledger, with links to victims and beneficiaries. */
export function ledger(items, empty) {
  return table([
    ["When", (item) => make("time", { title: utc(item.requested_micros / 1000) }, moment(item.requested_micros / 1000)), "id"],
    ["Victim", (item) => sentence(item.attempt), "id"],
    ["On", (item) => sentence(item.worker), "id"],
    ["For", (item) => (item.beneficiary ? sentence(item.beneficiary) : "–"), "id"],
    ["How", (item) => (item.asked === item.primitive ? item.primitive : `${item.primitive} (asked: ${item.asked})`)],
    ["By", (item) => item.by],
    ["Why", (item) => sentence(item.reason), "text"],
    ["End", (item) => (item.end ? state(item.end) : "…")],
    ["Slot free after", (item) => (item.freed_micros === null ? "–" : short(item.freed_micros - item.requested_micros)), "number"],
    ["Slot went to", (item) => (item.used_by ? sentence(item.used_by) : "–"), "id"],
    ["Work then", (item) => item.given_back ?? "–"],
    ["Slept", (item) => (isAsleep(item) ? taken(item.freed_micros / 1000, null) : span(item.suspended_millis)), "number"],
    ["In memory", (item) => (item.resident_bytes ? bytes(item.resident_bytes) : "–"), "number"],
    ["In files", (item) => (item.checkpoint_bytes ? bytes(item.checkpoint_bytes) : "–"), "number"],
    ["Saved", (item) => span(item.work_saved_millis), "number"],
    ["Lost", (item) => span(item.work_lost_millis), "number"],
  ], items, empty);
}

function isAsleep({ end, given_back: work, suspended_millis: slept }) {
  return slept === null && end === "suspended" && work === "waiting";
}
