// Decides when a view is refreshed: at once after an event, rarely while events arrive, often without a stream.

/** Minimum interval between refreshes. */
const STEP_MILLIS = 500;
const HIDDEN_STEP_MILLIS = 2000;
/** The server caches answers for a moment: after an event, refresh again in case the answer was from before. */
const SETTLED_MILLIS = 1500;
/** Interval while events arrive, for what has no events, such as reasons and the silence of workers. */
const CALM_MILLIS = 10_000;
/** Interval without events. */
const POLL_MILLIS = 3000;
const FAILED_MILLIS = 2000;

/** The refreshes of one view while it is shown. */
export class Rounds {
  #ask;
  #live;
  #timer = 0;
  #begun = -STEP_MILLIS;
  #running = null;
  #isWanted = false;
  #isChanged = false;
  #isStopped = false;

  /** `ask` refreshes and returns how to go on: "live", "failed", or "over" if nothing will change. */
  constructor({ ask, live }) {
    this.#ask = ask;
    this.#live = live;
  }

  /** Refreshes now, and once more if called again meanwhile. */
  async now() {
    clearTimeout(this.#timer);
    this.#isWanted = true;
    this.#running ??= this.#run();
    await this.#running;
  }

  /** Refreshes soon, because of an event. */
  changed() {
    this.#isChanged = true;
    if (!this.#running) this.#plan(this.#step());
  }

  stop() {
    clearTimeout(this.#timer);
    this.#isStopped = true;
    this.#isWanted = false;
  }

  #step() {
    return this.#begun + (document.hidden ? HIDDEN_STEP_MILLIS : STEP_MILLIS) - performance.now();
  }

  async #run() {
    let state = "over";
    let wasChanged = false;
    try {
      while (this.#isWanted) {
        wasChanged = this.#isChanged;
        this.#isWanted = false;
        this.#isChanged = false;
        this.#begun = performance.now();
        state = await this.#ask();
      }
    } finally {
      this.#running = null;
    }
    if (state === "over") return;
    if (state === "failed") this.#plan(FAILED_MILLIS);
    else if (this.#isChanged) this.#plan(this.#step());
    else if (!this.#live.isLive) this.#plan(POLL_MILLIS);
    else this.#plan(wasChanged ? SETTLED_MILLIS : CALM_MILLIS);
  }

  #plan(millis) {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    // A hidden tab sends no requests; it refreshes when it becomes visible.
    this.#timer = setTimeout(() => this.#live.isAway || this.now(), Math.max(0, millis));
  }
}
