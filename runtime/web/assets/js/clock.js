// The clock of the server, so that windows and durations do not depend on the clock of this machine. No other module reads a clock
// (a test checks this); `performance.now()` is used for durations only.

/** Limit of a response time. A larger step back means that the clock of the server was set back. */
const STEP_BACK_MILLIS = 20_000;

/** What to add to `performance.now()`; null before the first response. */
let offset = null;

/**
 * Sets the clock from the `Date` header of a response. The header is rounded down and sent before the response arrives, so the
 * largest offset is the most accurate.
 */
export function setClock(date) {
  const measured = Date.parse(date ?? "") - performance.now();
  if (Number.isNaN(measured)) return;
  if (offset === null || measured > offset || measured < offset - STEP_BACK_MILLIS) offset = measured;
}

/** Current time in milliseconds since 1970. */
export function now() {
  return offset === null ? Date.now() : offset + performance.now();
}
