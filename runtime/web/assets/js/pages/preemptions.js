// The preemption ledger of the cluster: totals, entries and flows in a window. The filters are part of the address.

import { now } from "../clock.js";
import { link, make, queueLink, renew, table } from "../elements.js";
import { count, moment, short, span, utc } from "../format.js";
import { get, ofRecording } from "../net.js";
import { under } from "./jobs.js";
import { Groups, cost } from "./ledger.js";

const LIMIT_MAX = 10_000;
const HOUR = 3_600_000;
export const LENGTHS = [["10m", "the last 10 minutes", HOUR / 6], ["1h", "the last hour", HOUR], ["1d", "the last day", 24 * HOUR],
  ["7d", "the last 7 days", 168 * HOUR], ["all", "all that is known", null]];
const PRIMITIVES = ["wait", "kill", "suspend", "checkpoint"];
const ENDS = ["suspended", "checkpointed", "killed", "finished", "ended", "withdrawn", "open"];
const FILTERS = ["by", "primitive", "queue", "end"];

export function view({ main, query, again }) {
  const chosen = { ...Object.fromEntries(["last", "from", "until", "flows", "sort", ...FILTERS].map((name) => [name, query.get(name) ?? ""])) };
  const changed = () => {
    const params = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value));
    history.replaceState(null, "", ofRecording(`/preemptions${params.size ? `?${params}` : ""}`));
    again();
  };
  const set = (name) => (event) => {
    chosen[name] = event.target.value;
    changed();
  };
  const today = make("p");
  const above = make("div");
  const groups = new Groups({ again, empty: "No slot was wanted back in these times.", sort: chosen.sort, sorted: (field) => {
    chosen.sort = field;
    changed();
  } });
  const below = make("div");
  main.append(make("h1", {}, "Preemptions"), today, filters(chosen, changed, set), above, make("h2", {}, "Who took whose slots"), groups.element, below);
  return {
    title: "Preemptions",
    async refresh() {
      const session = await get("session");
      const times = windowOf(chosen, session.is_live);
      const meant = new URLSearchParams([...Object.entries(times), ...FILTERS.filter((name) => chosen[name]).map((name) => [name, chosen[name]])]);
      const totals = await get(`preemptions/totals?${meant}`);
      const ofFlows = `preemptions/flows?${new URLSearchParams({ ...times, by: chosen.flows || "queue", limit: LIMIT_MAX })}`;
      const flows = await get(ofFlows);
      if (session.is_live) renew(today, cost(await get(`preemptions/totals?from=${midnight()}`), "Today"));
      renew(above, shownTimes(totals), figures(totals));
      await groups.refresh("preemptions", Object.fromEntries(meant));
      renew(below, totals.count > 0 && make("h2", {}, "By which primitive"), ways(totals), conversions(totals),
        make("h2", {}, "From whom to whom"), matrix(flows.items, chosen.flows || "queue"), flows.total > 0 && under(flows, null, ofFlows));
    },
  };
}

/** The time `millis` ago, in whole seconds, so that responses can be cached. */
export function since(millis) {
  return Math.floor((now() - millis) / 1000) * 1000;
}

/** The begin of this day, in local time. */
function midnight() {
  return new Date(now()).setHours(0, 0, 0, 0);
}

/** Fixed times from the address, or a window that moves on. */
function windowOf(chosen, isLive) {
  if (chosen.from || chosen.until) return Object.fromEntries(["from", "until"].filter((name) => chosen[name]).map((name) => [name, chosen[name]]));
  const [, , millis] = LENGTHS.find(([name]) => name === (chosen.last || (isLive ? "1h" : "all"))) ?? LENGTHS[1];
  return millis === null ? { from: 0 } : { from: since(millis) };
}

function filters(chosen, changed, set) {
  const choice = (name, label, options) => {
    const select = make("select", { "aria-label": label, change: set(name) }, options.map(([value, words]) => make("option", { value }, words)));
    select.value = chosen[name];
    return select;
  };
  const search = (name, label) => make("input", { type: "search", placeholder: label, "aria-label": label, value: chosen[name], change: set(name) });
  const lengths = [["", "usual window"], ...LENGTHS.map(([name, words]) => [name, words])];
  const times = make("select", { "aria-label": "Times", change: (event) => {
    Object.assign(chosen, { last: event.target.value, from: "", until: "" });
    changed();
  } }, lengths.map(([value, words]) => make("option", { value }, words)), chosen.from || chosen.until ? make("option", { value: "held" }, "the times of the address") : null);
  times.value = chosen.from || chosen.until ? "held" : chosen.last;
  const every = (words, all) => [["", words], ...all.map((name) => [name, name])];
  return make("div", { class: "bar" }, times, choice("primitive", "How", every("in every way", PRIMITIVES)), choice("end", "End", every("every end", ENDS)),
    search("by", "By"), search("queue", "Queue"), choice("flows", "Sum up by", [["", "flows by queue"], ["job", "flows by job"]]));
}

/** The window that is shown, and a link that fixes it. */
function shownTimes(totals) {
  const params = new URLSearchParams(location.search);
  params.delete("last");
  params.set("from", totals.from_millis);
  params.set("until", totals.until_millis);
  const time = (millis) => make("time", { title: utc(millis) }, moment(millis));
  const since = totals.from_millis === 0 ? "All" : ["From ", time(totals.from_millis)];
  return make("p", { class: "under" }, make("span", {}, since, " until ", time(totals.until_millis)), link(`/preemptions?${params}`, "Hold these times"));
}

/** A sum; if something is left out, it is a lower bound. */
export function least({ remarks: leftOut }, figure) {
  return leftOut.length > 0 ? `at least ${figure}` : figure;
}

/** Latency: the median, and the 95th and 99th percentile. */
function quickness(latency) {
  if (latency.count === 0) return ["–", "none was measured"];
  return [short(latency.p50_micros), `95 %: ${short(latency.p95_micros)}, 99 %: ${short(latency.p99_micros)}`];
}

function figures(totals) {
  const cards = [
    ["Slots wanted back", least(totals, count(totals.count)), `${count(totals.taken)} were taken${totals.unused ? `, ${count(totals.unused)} were not used` : ""}`],
    ["Slot free after", ...quickness(totals.freeing)],
    ["Resumed within", ...quickness(totals.resuming)],
    ["Restored within", ...quickness(totals.restoring)],
    ["Work saved", least(totals, span(totals.work_saved_millis)), `${span(totals.work_lost_millis)} lost`],
    ["Time without a slot", least(totals, span(totals.slot_millis)), "of those that were taken"],
  ];
  return make("section", { class: "cards", "aria-label": "In all" }, cards.map(([label, figure, more]) =>
    make("div", { class: "card" }, make("div", { class: "label" }, label), make("div", { class: "figure" }, figure), make("div", { class: "more" }, more))));
}

/** Totals by primitive and outcome. */
function ways(totals) {
  if (totals.primitives.length === 0) return [];
  const ends = ENDS.filter((end) => totals.primitives.some((one) => one.ends[end]));
  return table("By primitive", [
    ["How", (one) => one.primitive],
    ["Wanted", (one) => count(one.count), "number"],
    ...ends.map((end) => [end, (one) => count(one.ends[end] ?? 0), "number"]),
    ["Free after, half", (one) => (one.freeing.count ? short(one.freeing.p50_micros) : "–"), "number"],
    ["95 %", (one) => (one.freeing.count ? short(one.freeing.p95_micros) : "–"), "number"],
    ["99 %", (one) => (one.freeing.count ? short(one.freeing.p99_micros) : "–"), "number"],
    ["Saved", (one) => span(one.work_saved_millis), "number"],
    ["Lost", (one) => span(one.work_lost_millis), "number"],
  ], totals.primitives, "");
}

/** Preemptions with another primitive than the requested one. */
function conversions(totals) {
  return totals.converted.map((one) =>
    make("p", { class: "under" }, `${count(one.count)} asked to ${one.asked} became ${one.primitive}; the newest of these: ${one.reason}`));
}

/** Flows of slots: a row for each victim, a column for each beneficiary. */
function matrix(flows, by) {
  const nobody = "nobody";
  const toName = (flow) => flow.to ?? nobody;
  const victims = [...new Set(flows.map((flow) => flow.from))];
  const takers = [...new Set(flows.map(toName))];
  const named = (name) => {
    if (name === nobody) return name;
    return by === "job" ? link(`/jobs/${name}`, name) : queueLink(name);
  };
  const cell = (taker) => (victim) => {
    const between = flows.filter((flow) => flow.from === victim && toName(flow) === taker);
    if (between.length === 0) return "";
    const sum = (name) => between.reduce((total, flow) => total + flow[name], 0);
    const often = between.map((flow) => `${count(flow.count)} by ${flow.primitive}`).join(", ");
    return [make("div", {}, span(sum("slot_millis"))),
      make("div", { class: "quiet" }, `${often}; ${span(sum("work_saved_millis"))} saved, ${span(sum("work_lost_millis"))} lost`)];
  };
  const columns = [["From", named, "id"], ...takers.map((taker) => [["For ", named(taker)], cell(taker), "text"])];
  return table("Flows of slots", columns, victims, "No slot was taken in these times.");
}
