// A tab with a list that grows, searches, sorts and filters.

import { make, renew } from "../elements.js";
import { count } from "../format.js";
import { get, ofRecording } from "../net.js";
import { under } from "./jobs.js";

const STEP = 100;
const LIMIT_MAX = 10_000;

/**
 * A tab with a paged list; `filtered` names the fields that its search covers, and `above` shows a summary of the whole list. `chips` are
 * filters of the server, the first of them without a condition: name in the address, label, query parameters, count of a page.
 */
export function list(path, show, filtered, above, chips = []) {
  return ({ id, place, query, again }) => {
    let limit = STEP;
    let wanted = query.get("text") ?? "";
    let chosen = chips.find(({ name }) => name === query.get("show")) ?? chips[0];
    const changed = () => {
      const params = new URLSearchParams(Object.entries({ show: chosen?.name, text: wanted, sort: sorting.by }).filter(([, value]) => value));
      history.replaceState(null, "", ofRecording(`${location.pathname}${params.size ? `?${params}` : ""}`));
      again();
    };
    const sorting = {
      by: query.get("sort") ?? "",
      choose(field) {
        sorting.by = field;
        changed();
      },
    };
    const more = () => {
      limit = Math.min(limit * 10, LIMIT_MAX);
      again();
    };
    const search = filtered && make("input", { type: "search", placeholder: filtered, "aria-label": "Filter", value: wanted,
      input: (event) => { wanted = event.target.value.trim(); changed(); } });
    const buttons = chips.map((chip) => make("button", { type: "button", class: "chip", click: () => { chosen = chip; changed(); } }, chip.label));
    const mark = (counts) => buttons.forEach((button, at) => {
      button.setAttribute("aria-pressed", String(chips[at] === chosen));
      button.textContent = `${chips[at].label} ${count(counts[chips[at].count])}`;
    });
    const rows = make("div");
    place.append(make("div", { class: "bar" }, buttons.length ? make("div", { class: "chips", role: "group", "aria-label": "Show" }, buttons) : [], search ?? []), rows);
    return {
      async refresh(job) {
        const asked = new URLSearchParams({ limit, ...chosen?.asked });
        if (sorting.by) asked.set("sort", sorting.by);
        if (filtered && wanted) asked.set("text", wanted);
        const page = await get(`jobs/${id}/${path}?${asked}`);
        if (page.counts) mark(page.counts);
        const isFiltered = asked.has("text") || (chosen && chosen !== chips[0]);
        renew(rows, above ? await above(id) : [], show(page.items, job, { again, sorting, isFiltered, page }), under(page, more, `jobs/${id}/${path}?${asked}`));
      },
    };
  };
}
