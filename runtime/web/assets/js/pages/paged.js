// A tab with a list that grows, searches and sorts.

import { make, renew } from "../elements.js";
import { get, ofRecording } from "../net.js";
import { under } from "./jobs.js";

const STEP = 100;
const LIMIT_MAX = 10_000;

/**
 * A tab with a paged list; `filtered` names the fields that its search covers, and `above` shows a summary of the whole list.
 */
export function list(path, show, filtered, above) {
  return ({ id, place, query, again }) => {
    let limit = STEP;
    let wanted = query.get("text") ?? "";
    const sorting = {
      by: query.get("sort") ?? "",
      choose(field) {
        sorting.by = field;
        const params = new URLSearchParams(Object.entries({ text: wanted, sort: field }).filter(([, value]) => value));
        history.replaceState(null, "", ofRecording(`${location.pathname}${params.size ? `?${params}` : ""}`));
        again();
      },
    };
    const more = () => {
      limit = Math.min(limit * 10, LIMIT_MAX);
      again();
    };
    const search = filtered && make("input", { type: "search", placeholder: filtered, "aria-label": "Filter", value: wanted,
      input: (event) => { wanted = event.target.value.trim(); again(); } });
    const rows = make("div");
    place.append(...(search ? [make("div", { class: "bar" }, search)] : []), rows);
    return {
      async refresh(job) {
        const asked = new URLSearchParams({ limit });
        if (sorting.by) asked.set("sort", sorting.by);
        if (filtered && wanted) asked.set("text", wanted);
        const page = await get(`jobs/${id}/${path}?${asked}`);
        renew(rows, above ? await above(id) : [], show(page.items, job, { again, sorting, isFiltered: asked.has("text") }), under(page, more));
      },
    };
  };
}
