// A closer look at a picture of more than a page can hold: what is in view is asked for again, and fitted into the whole.
// Owns when that is asked, and where the answer belongs. Does not own what is in view (timeline).

/** Whoever still moves the picture does not ask. */
const SETTLED_MILLIS = 200;

export class CloserLook {
  #ask;
  #show;
  #timer = 0;
  #round = 0;

  /** `ask` asks for a window in milliseconds since 1970; `show` gets the answer, and the window in microseconds of the whole. */
  constructor(ask, show) {
    this.#ask = ask;
    this.#show = show;
  }

  /** Asks for what is in view, from and until in microseconds of the whole, and as much again on both sides. */
  at(whole, from, until) {
    this.leave();
    const round = this.#round;
    const beside = until - from;
    const window = [from - beside, until + beside];
    this.#timer = setTimeout(async () => {
      const [first, last] = window.map((micros) => (whole.base_micros + micros) / 1000);
      let part;
      try {
        part = await this.#ask(Math.max(0, Math.floor(first)), Math.ceil(last));
      } catch {
        // The whole is still to be seen, and the next move asks again.
        return;
      }
      if (round === this.#round) this.#show(within(whole, part), window);
    }, SETTLED_MILLIS);
  }

  /** What was asked for is not wanted any more. */
  leave() {
    clearTimeout(this.#timer);
    this.#round += 1;
  }
}

/** An answer about a window, on the axis and in the rows of the whole. */
function within(whole, part) {
  const name = (lane) => `${lane.worker} ${lane.kind} ${lane.number}`;
  const lanes = [...whole.lanes];
  const rows = new Map(lanes.map((lane, row) => [name(lane), row]));
  const placed = part.lanes.map((lane) => rows.get(name(lane)) ?? lanes.push(lane) - 1);
  const later = part.base_micros - whole.base_micros;
  const stints = { ...part.stints, start: part.stints.start.map((start) => start + later), lane: Uint32Array.from(part.stints.lane, (lane) => placed[lane]) };
  const naps = part.naps.map((nap) => ({ ...nap, start: nap.start + later }));
  return { ...part, base_micros: whole.base_micros, until_micros: whole.until_micros, lanes, stints, naps };
}
