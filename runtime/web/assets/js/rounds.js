// When what is shown is asked for again: at once when something has changed, seldom while events come, often while they do not.
// Owns the clock. Does not own what is asked for (pages) nor what is heard (live).

/** Whoever hears of changes asks no more often than this. */
const STEP_MILLIS = 500;
const HIDDEN_STEP_MILLIS = 2000;
/** The server keeps answers for a moment: one that was kept before the change is not the last. */
const SETTLED_MILLIS = 1500;
/** What no event tells: reasons, how long a worker has been silent. */
const CALM_MILLIS = 10_000;
/** Without events. */
const POLL_MILLIS = 3000;
const FAILED_MILLIS = 2000;

/** The rounds of one view, from when it is shown until another one is. */
export class Rounds {
  #ask;
  #live;
  #timer = 0;
  #begun = -STEP_MILLIS;
  #running = null;
  #isWanted = false;
  #isChanged = false;
  #isStopped = false;

  /** `ask` asks, and tells whether to go on: "live", "failed", or "over" if nothing changes any more. */
  constructor({ ask, live }) {
    this.#ask = ask;
    this.#live = live;
  }

  /** Asks now, and once more if that is wanted meanwhile. */
  async now() {
    clearTimeout(this.#timer);
    this.#isWanted = true;
    this.#running ??= this.#run();
    await this.#running;
  }

  /** Something has changed. */
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
    // A tab that nobody sees asks for nothing; whoever looks at it again asks.
    this.#timer = setTimeout(() => this.#live.isAway || this.now(), Math.max(0, millis));
  }
}
