// The time of the server, so that windows and lengths up to now are right whatever the clock of this machine says. No other module reads
// a clock (a test); `performance.now()` measures lengths alone.

/** An answer takes less than this; a larger step back is one of the server's clock. */
const STEP_BACK_MILLIS = 20_000;

/** What has to be added to `performance.now()`; none before the first answer. */
let offset = null;

/** Learns from the `Date` header of an answer. It is rounded down and was written before the answer came, so the largest is the best. */
export function heard(date) {
  const told = Date.parse(date ?? "") - performance.now();
  if (Number.isNaN(told)) return;
  if (offset === null || told > offset || told < offset - STEP_BACK_MILLIS) offset = told;
}

/** Milliseconds since 1970. */
export function now() {
  return offset === null ? Date.now() : offset + performance.now();
}
