// Times, spans and sizes in words, as the command line prints them; moments in local time, with UTC beside them.
// Owns their forms. Does not own where they stand.

import { now } from "./clock.js";

/** Milliseconds, in the coarsest terms that still say something. */
export function span(millis) {
  if (millis === null || millis === undefined) return "–";
  const seconds = Math.floor(millis / 1000);
  if (millis < 1000) return `${Math.round(millis)} ms`;
  if (seconds < 10) return `${seconds}.${Math.floor((millis % 1000) / 100)} s`;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
}

/** Microseconds, likewise. */
export function short(micros) {
  return micros < 10_000 ? `${(micros / 1000).toFixed(1)} ms` : span(micros / 1000);
}

/** How much more one thing is than another, in some form. */
export function signed(difference, form) {
  if (difference === 0) return "–";
  return `${difference > 0 ? "+" : "−"}${form(Math.abs(difference))}`;
}

/** Bytes by powers of 1024. */
export function bytes(count) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  let left = count;
  while (left >= 1024 && unit < units.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${count} bytes` : `${left.toFixed(left < 10 ? 1 : 0)} ${units[unit]}`;
}

/** Thousands apart. */
export function count(number) {
  return Number(number).toLocaleString("en-GB");
}

/** How long something took or, while it goes on, has taken. */
export function taken(begun, ended) {
  return span(Math.max(0, (ended ?? now()) - begun));
}

/** A moment: today's without the date. */
export function moment(millis) {
  if (millis === null || millis === undefined) return "–";
  const date = new Date(millis);
  const isToday = date.toDateString() === new Date(now()).toDateString();
  const time = date.toLocaleTimeString("en-GB");
  return isToday ? time : `${date.toLocaleDateString("en-CA")} ${time}`;
}

/** The same in UTC, for the tooltip. */
export function utc(millis) {
  return millis === null || millis === undefined ? "" : new Date(millis).toISOString();
}
