// The ledger: who took which slots from whom, in groups that open to their entries.

import { csvLink, link, make, queueLink, renew, sentence, state, table, withValues } from "../elements.js";
import { bytes, count, moment, short, span, taken, utc } from "../format.js";
import { get, ofRecording } from "../net.js";
import { remarks, under } from "./jobs.js";

const STEP = 100;
const LIMIT_MAX = 10_000;
/** Entries of an open group; more are in its numbers only. */
const ENTRIES_MAX = 1000;

/** The groups of a ledger, sorted and paged by the server; an open group shows its entries. */
export class Groups {
  #again;
  #empty;
  #sorting;
  #isOfJob;
  #limit = STEP;
  #open = new Set();
  element = make("div", { class: "groups" });

  /** `sorted` is called with a field after its heading was chosen; with `isOfJob` all slots are of one job, which is not named. */
  constructor({ again, empty, sort = "", sorted = () => {}, isOfJob = false }) {
    this.#isOfJob = isOfJob;
    this.#again = again;
    this.#empty = empty;
    this.#sorting = { by: sort, choose: (field) => {
      this.#sorting.by = field;
      sorted(field);
      again();
    } };
  }

  /** Shows the groups of the list at `path`, limited to the filters `asked`. */
  async refresh(path, asked = {}) {
    const query = (more) => new URLSearchParams({ ...asked, ...more });
    const sort = this.#sorting.by && { sort: this.#sorting.by };
    const address = `${path}/groups?${query({ limit: this.#limit, ...sort })}`;
    const page = await get(address);
    const entries = new Map();
    for (const { group } of page.items.filter((item) => this.#open.has(item.group))) {
      entries.set(group, await get(`${path}?${query({ group, limit: ENTRIES_MAX })}`));
    }
    const more = () => {
      this.#limit = Math.min(this.#limit * 10, LIMIT_MAX);
      this.#again();
    };
    renew(this.element, remarks(page), this.#rows(page.items, entries), page.total > 0 && [under(page, more, address), make("p", { class: "under" }, csvLink(`${path}?${query({ limit: this.#limit })}`, "Save all entries as csv"))]);
  }

  #rows(groups, entries) {
    const columns = [
      ["When", (group) => this.#toggle(group), "id", "requested"],
      ["Slots", (group) => (group.taken === group.count ? count(group.count) : `${count(group.taken)} of ${count(group.count)}`), "number", "count"],
      !this.#isOfJob && ["Of", (group) => named(group.victim, group.victim_name, group.victim_queue), "text", "victim"],
      ["For", (group) => named(group.beneficiary, group.beneficiary_name, group.beneficiary_queue), "text", "beneficiary"],
      ["End", (group) => ends(group.ends)],
      ["Free after", (group) => (group.free_micros === null ? "–" : short(group.free_micros)), "number", "free"],
      ["Without a slot", (group) => span(group.slot_millis), "number", "slot"],
      ["Saved", (group) => span(group.work_saved_millis), "number", "saved"],
      ["Lost", (group) => span(group.work_lost_millis), "number", "lost"],
      ["Why", (group) => [sentence(group.reason), make("span", { class: "quiet" }, ` (${group.by})`)], "text reason"],
    ].filter(Boolean);
    const shown = table("Groups of preemptions", columns, groups, this.#empty, this.#sorting);
    [...shown.querySelectorAll("tbody > tr")].forEach((row, at) => {
      const known = entries.get(groups[at].group);
      if (known) row.after(make("tr", { class: "entries" }, make("td", { colspan: columns.length }, ledger(known.items, "No entries.", { isGroup: true }), known.next !== null && under(known))));
    });
    return shown;
  }

  #toggle({ group, count: size, requested_micros: requested }) {
    const isOpen = this.#open.has(group);
    const when = make("time", { title: utc(requested / 1000) }, moment(requested / 1000));
    const toggle = () => {
      if (!this.#open.delete(group)) this.#open.add(group);
      this.#again();
    };
    return make("button", { type: "button", class: "plain open", "aria-expanded": String(isOpen), title: size === 1 ? "Show the entry" : `Show the ${count(size)} entries`, click: toggle },
      make("span", { "aria-hidden": "true" }, isOpen ? "\u25be " : "\u25b8 "), when);
  }
}

/** A job by its name, with its queue. */
function named(job, name, queue) {
  if (job === null) return "–";
  return [link(`/jobs/${job}`, name ?? job), queue !== null && make("div", { class: "quiet" }, queueLink(queue))];
}

/** One state for all, or the number of each. */
function ends(counts) {
  const all = Object.entries(counts);
  if (all.length === 1) return state(all[0][0]);
  return all.map(([end, often]) => make("div", {}, `${count(often)} `, state(end)));
}

/** What the preemptions of a window cost. */
export function cost(totals, when) {
  if (totals.count === 0) return `${when} no slot was wanted back.`;
  return [`${when} `, make("b", {}, times(totals.count)), ` a slot was wanted back; `, make("b", {}, span(totals.work_saved_millis)), " of work was saved, ",
    make("b", {}, span(totals.work_lost_millis)), ` lost. Work was without a slot for ${span(totals.slot_millis)}.`];
}

function times(often) {
  return often === 1 ? "once" : `${count(often)} times`;
}

/** The tab of a job: totals, then groups. */
export function preemptions({ id, place, query, again }) {
  const above = make("p");
  const groups = new Groups({ again, empty: "No slot of this job was taken.", isOfJob: true, sort: query.get("sort") ?? "",
    sorted: (field) => history.replaceState(null, "", ofRecording(`${location.pathname}${field && `?sort=${field}`}`)) });
  place.append(above, groups.element);
  return {
    async refresh() {
      renew(above, cost(await get(`jobs/${id}/preemptions/totals`), "In this job"));
      await groups.refresh(`jobs/${id}/preemptions`);
    },
  };
}

/** Entries of the ledger, with links to victims and beneficiaries. With `isGroup` what they have in common is left out. */
export function ledger(items, empty, { isGroup = false } = {}) {
  const name = isGroup && items.length > 0 ? `Preemptions from ${moment(items[0].requested_micros / 1000)}, ${items[0].attempt}` : "Preemptions";
  const columns = [
    !isGroup && ["When", (item) => make("time", { title: utc(item.requested_micros / 1000) }, moment(item.requested_micros / 1000)), "id"],
    ["Victim", (item) => sentence(item.attempt), "id"],
    ["On", (item) => sentence(item.worker), "id"],
    !isGroup && ["For", (item) => (item.beneficiary ? sentence(item.beneficiary) : "–"), "id"],
    ["How", (item) => (item.asked === item.primitive ? item.primitive : `${item.primitive} (asked: ${item.asked})`)],
    !isGroup && ["By", (item) => item.by],
    !isGroup && ["Why", (item) => sentence(item.reason), "text reason"],
    ["End", (item) => (item.end ? state(item.end) : "…")],
    ["Slot free after", (item) => (item.freed_micros === null ? "–" : short(item.freed_micros - item.requested_micros)), "number"],
    ["Slot went to", (item) => (item.used_by ? sentence(item.used_by) : item.unused ? sentence(`nobody: ${item.unused}`) : "–"), "id"],
    ["Work then", (item) => item.given_back ?? "–"],
    ["Suspended", (item) => (isSuspended(item) ? taken(item.freed_micros / 1000, null) : span(item.suspended_millis)), "number"],
    ["In memory", (item) => (item.resident_bytes ? bytes(item.resident_bytes) : "–"), "number"],
    ["In files", (item) => (item.checkpoint_bytes ? bytes(item.checkpoint_bytes) : "–"), "number"],
    ["Saved", (item) => span(item.work_saved_millis), "number"],
    ["Lost", (item) => span(item.work_lost_millis), "number"],
  ].filter(Boolean);
  return table(name, withValues(columns, items), items, empty);
}

function isSuspended({ end, given_back: work, suspended_millis: time }) {
  return time === null && end === "suspended" && work === "waiting";
}
