// The model of a timeline: rows of stints and naps, made from the columns of an answer.

import { bytes, count, short, span } from "../format.js";

export const ENDS = ["still running", "suspended", "checkpointed", "killed for another job", "succeeded", "failed"];
export const OPEN = 0;
export const SUSPENDED = 1;
export const CHECKPOINTED = 2;
export const KILLED = 3;
export const FAILED = 5;

const GIVEN_BACK = {
  waiting: () => "waits to resume",
  resumed: () => "resumed later",
  restored: (taken) => `continued by ${taken.restored_by}`,
  lost: () => "its work is repeated",
};

const pad = (number) => String(number).padStart(4, "0");

/**
 * The rows of an answer. `byTask` gives each task a row of its own, with its naps; otherwise each slot has one. `own` is the number of
 * the job on whose page the timeline is, if any. `groups` are the groups of the jobs, if bars are coloured by them.
 */
export class Model {
  #span;
  /** Open stints, and their length when the answer was made. */
  #stints = [];
  #naps = [];

  constructor(answer, byTask, own = null, groups = null) {
    this.#keep(answer);
    this.own = own;
    this.groups = groups;
    this.length = answer.stints.start.length;
    this.span = this.#span;
    this.isReduce = Uint8Array.from(answer.lanes, (lane) => (lane.kind === "reduce" ? 1 : 0));
    this.byTask = byTask;
    this.rows = [];
    this.rowOf = new Uint32Array(this.length);
    if (byTask) this.#byTask();
    else this.#bySlot();
    this.links = this.#links();
    this.naps = this.#interrupted();
  }

  /** Stints that ended with a preemption, in order. */
  #interrupted() {
    const { end, start } = this.answer.stints;
    const isInterrupted = (stint) => [SUSPENDED, CHECKPOINTED, KILLED].includes(end[stint]);
    return [...end.keys()].filter(isInterrupted).sort((one, other) => start[one] - start[other]);
  }

  /** Pairs of stints: the one that lost a slot and the one that got it. */
  #links() {
    const { stints, preemptions, base_micros: base } = this.answer;
    const wanted = new Map(preemptions.filter((taken) => taken.used_by).map((taken) => [taken.used_by, []]));
    if (wanted.size === 0) return [];
    for (let stint = 0; stint < this.length; stint += 1) wanted.get(this.attempt(stint))?.push(stint);
    const links = [];
    for (let from = 0; from < this.length; from += 1) {
      const taken = preemptions[stints.preemption[from]];
      if (!taken?.used_by) continue;
      const far = (stint) => Math.abs(base + stints.start[stint] - taken.used_micros);
      const [to] = wanted.get(taken.used_by).sort((one, other) => far(one) - far(other));
      if (to !== undefined && to !== from) links.push({ from, to });
    }
    return links;
  }

  attempt(stint) {
    return `${this.task(stint)}.${this.answer.stints.attempt[stint]}`;
  }

  /** Copies the columns that grow, since the answer is shared. */
  #keep(answer) {
    this.#span = Math.max(1, answer.until_micros - answer.base_micros);
    const length = answer.stints.length.slice();
    const naps = answer.naps.map((nap) => ({ ...nap }));
    this.answer = { ...answer, stints: { ...answer.stints, length }, naps };
    answer.stints.end.forEach((end, stint) => end === OPEN && this.#stints.push([stint, length[stint]]));
    for (const nap of naps) if (nap.start + nap.length >= this.#span) this.#naps.push([nap, nap.length]);
  }

  /** Whether a stint is open. */
  get goesOn() {
    return this.#stints.length + this.#naps.length > 0;
  }

  /** Extends open stints by the time since the answer was made, in microseconds. */
  grow(micros) {
    this.span = this.#span + micros;
    for (const [stint, length] of this.#stints) this.answer.stints.length[stint] = length + micros;
    for (const [nap, length] of this.#naps) nap.length = length + micros;
  }

  #bySlot() {
    const { lanes, stints } = this.answer;
    const lives = new Map();
    for (const lane of lanes) lives.set(lane.worker_name, (lives.get(lane.worker_name) ?? new Set()).add(lane.worker));
    // A worker that was restarted has another number.
    const named = (lane) => (lives.get(lane.worker_name).size > 1 ? `${lane.worker_name} ${Number(lane.worker.slice(7))}` : lane.worker_name);
    this.rows = lanes.map((lane) => ({
      label: `${named(lane)} ${lane.kind} ${lane.number + 1}`,
      stints: [],
      naps: [],
    }));
    for (let stint = 0; stint < this.length; stint += 1) {
      this.rowOf[stint] = stints.lane[stint];
      this.rows[stints.lane[stint]].stints.push(stint);
    }
  }

  #byTask() {
    const found = new Map();
    for (let stint = 0; stint < this.length; stint += 1) {
      if (this.own !== null && this.answer.stints.job[stint] !== this.own) continue;
      const task = this.task(stint);
      if (!found.has(task)) found.set(task, { label: task.replace(/^job_\d+_/, ""), stints: [], naps: [] });
      found.get(task).stints.push(stint);
    }
    for (const nap of this.answer.naps) found.get(nap.attempt.replace(/\.\d+$/, ""))?.naps.push(nap);
    const names = [...found.keys()].sort();
    this.rows = names.map((name) => found.get(name));
    this.rows.forEach((row, at) => {
      row.stints.sort((one, other) => this.answer.stints.start[one] - this.answer.stints.start[other]);
      for (const stint of row.stints) this.rowOf[stint] = at;
    });
  }

  /** The label inside a bar: the job in rows of slots, the worker in rows of tasks. */
  short(stint) {
    const { job, lane, attempt } = this.answer.stints;
    const group = this.groups?.get(job[stint]);
    if (group) return [group.letter, group.name].filter(Boolean).join(" ");
    if (!this.byTask) return `job_${pad(job[stint])}`;
    const { worker, worker_name: name } = this.answer.lanes[lane[stint]];
    return attempt[stint] > 1 ? `${name || worker}, try ${attempt[stint]}` : name || worker;
  }

  task(stint) {
    const { stints } = this.answer;
    return `job_${pad(stints.job[stint])}_${this.isReduce[stints.lane[stint]] ? "r" : "m"}_${pad(stints.task[stint])}`;
  }

  /** The stint at a time in a row, or the nearest within a tolerance. */
  at(row, micros, tolerance) {
    const { start, length } = this.answer.stints;
    let best = -1;
    let nearest = tolerance;
    for (const stint of this.rows[row]?.stints ?? []) {
      const distance = Math.max(start[stint] - micros, micros - start[stint] - length[stint], 0);
      if (distance <= nearest) {
        best = stint;
        nearest = distance;
        if (distance === 0) break;
      }
    }
    return best;
  }

  /** The number of stints that a bar represents. */
  stands(stint) {
    return this.answer.stints.count?.[stint] ?? 1;
  }

  /** Describes a stint. */
  describe(stint) {
    const { answer } = this;
    const { stints } = answer;
    const lane = answer.lanes[stints.lane[stint]];
    const where = lane.worker_name || lane.worker;
    const several = this.stands(stint);
    if (several > 1) return `${count(several)} stretches of work on ${where} in ${short(stints.length[stint])}, such as ${this.attempt(stint)}`;
    const words = [`${this.attempt(stint)} on ${where}: ${short(stints.length[stint])} of work`];
    if (stints.starting[stint] >= 1000) words.push(`the first ${short(stints.starting[stint])} of it to start`);
    if (answer.restores[stint]) words.push(`continued from ${answer.restores[stint]}`);
    const gave = this.links.find((link) => link.to === stint);
    if (gave) words.push(`in the slot of ${this.attempt(gave.from)}`);
    const taken = answer.preemptions[stints.preemption[stint]];
    if (taken) {
      words.push(`then ${ENDS[stints.end[stint]]}${taken.beneficiary ? ` for ${taken.beneficiary}` : ""} by ${taken.by} (${taken.reason})`);
      if (taken.work_saved_millis) words.push(`${short(taken.work_saved_millis * 1000)} of work saved`);
      if (taken.work_lost_millis) words.push(`${short(taken.work_lost_millis * 1000)} lost`);
      if (taken.used_by) words.push(`${taken.used_by} got the slot after ${span(taken.kept_millis)}`);
      if (taken.unused) words.push(`the slot was not used: ${taken.unused}`);
      if (taken.given_back) words.push(GIVEN_BACK[taken.given_back](taken));
      if (taken.resident_bytes) words.push(`${bytes(taken.resident_bytes)} kept in memory`);
    } else words.push(answer.ends[stint] ?? ENDS[stints.end[stint]]);
    return words.join(", ");
  }
}
