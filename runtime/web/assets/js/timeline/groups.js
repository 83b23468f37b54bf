// Groups of jobs by name, queue or user: each has a colour and a letter, and keeps both while it is in view.

import { make } from "../elements.js";

/** What bars can be coloured by; the first is the kind of the task. */
export const COLOURINGS = [["", "Map or reduce"], ["job", "Job"], ["queue", "Queue"], ["user", "User"]];
/** Colours in the style sheet, --group-1 and so on. The groups with the most work get them; the others are grey. */
export const GROUPS_MAX = 7;

const NAMES = { job: ({ number, name }) => `job_${String(number).padStart(4, "0")} ${name}`, queue: ({ queue }) => queue, user: ({ user }) => user };

export class Groups {
  /** Place of each group that has a colour. */
  #places = new Map();

  /** Assigns the jobs of an answer to groups: returns place, letter and name by job number. */
  of(answer, colouring) {
    const name = NAMES[colouring];
    const work = new Map();
    const names = new Map(answer.jobs.map((job) => [job.number, name(job)]));
    const { job, length } = answer.stints;
    for (let stint = 0; stint < job.length; stint += 1) {
      const group = names.get(job[stint]);
      work.set(group, (work.get(group) ?? 0) + length[stint]);
    }
    for (const known of [...this.#places.keys()]) if (!work.has(known)) this.#places.delete(known);
    const most = [...work.keys()].sort((one, other) => work.get(other) - work.get(one)).slice(0, GROUPS_MAX);
    for (const group of most) {
      const taken = new Set(this.#places.values());
      const free = [...Array(GROUPS_MAX).keys()].find((place) => !taken.has(place));
      if (!this.#places.has(group) && free !== undefined) this.#places.set(group, free);
    }
    const place = (group) => this.#places.get(group) ?? GROUPS_MAX;
    return new Map([...names].map(([number, group]) => [number, { place: place(group), letter: letter(place(group)), name: group }]));
  }
}

function letter(place) {
  return place < GROUPS_MAX ? String.fromCharCode(65 + place) : "";
}

/** The groups with their colours and letters. */
export function groupLegend(groups) {
  const shown = new Map();
  for (const group of groups?.values() ?? []) if (group.place < GROUPS_MAX) shown.set(group.place, group);
  const hasOthers = [...(groups?.values() ?? [])].some(({ place }) => place === GROUPS_MAX);
  const entry = (kind, sign, words) => make("span", {}, make("b", { class: `swatch ${kind}`, "aria-hidden": "true" }, sign), words);
  const all = [...shown.values()].sort((one, other) => one.place - other.place);
  return [...all.map(({ place, letter: sign, name }) => entry(`group-${place + 1}`, sign, `${sign} ${name}`)), hasOthers && entry("other", "", "others")];
}
