// Loads more detail for the part of a large timeline that is in view, and fits it into the whole.

/** Waits until the view has stopped moving. */
const SETTLED_MILLIS = 200;

export class CloserLook {
  #ask;
  #show;
  #timer = 0;
  #round = 0;

  /** `ask` requests a window in milliseconds since 1970; `show` gets the answer, and the window in microseconds relative to the whole. */
  constructor(ask, show) {
    this.#ask = ask;
    this.#show = show;
  }

  /** Requests the part in view, in microseconds relative to the whole, plus its length on both sides. */
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
        // The coarse timeline remains, and the next move tries again.
        return;
      }
      if (round === this.#round) this.#show(within(whole, part), window);
    }, SETTLED_MILLIS);
  }

  /** Discards the pending request. */
  leave() {
    clearTimeout(this.#timer);
    this.#round += 1;
  }
}

/** Maps the answer for a window to the axis and rows of the whole. */
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
