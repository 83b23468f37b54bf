// Formats times, durations and sizes as the command line does; times are local, with UTC in the tooltip.

import { now } from "./clock.js";

/** A duration in milliseconds, in the largest useful units. */
export function span(millis) {
  if (millis === null || millis === undefined) return "–";
  const seconds = Math.floor(millis / 1000);
  if (millis < 1000) return `${Math.round(millis)} ms`;
  if (seconds < 10) return `${seconds}.${Math.floor((millis % 1000) / 100)} s`;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
}

/** A duration in microseconds. */
export function short(micros) {
  return micros < 10_000 ? `${(micros / 1000).toFixed(1)} ms` : span(micros / 1000);
}

/** A difference with its sign; `form` formats the absolute value. */
export function signed(difference, form) {
  if (difference === 0) return "–";
  return `${difference > 0 ? "+" : "−"}${form(Math.abs(difference))}`;
}

/** Bytes in binary units. */
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

/** A number with separators between thousands. */
export function count(number) {
  return Number(number).toLocaleString("en-GB");
}

/** An estimate of the time left, which is not exact to less than a second. */
export function about(left) {
  if (!left) return "";
  return left.likely_millis < 1000 ? "under 1 s" : `about ${span(left.likely_millis)}`;
}

/** The duration of something that has ended, or its duration so far. */
export function taken(begun, ended) {
  return span(Math.max(0, (ended ?? now()) - begun));
}

/** Times before this are counted from the start of a simulation. */
const SIMULATED_MILLIS_MAX = 365 * 86_400_000;

/** A local time, without the date if it is today; in a simulation the time since its start. */
export function moment(millis) {
  if (millis === null || millis === undefined) return "–";
  if (millis < SIMULATED_MILLIS_MAX) return `+${span(millis)}`;
  const date = new Date(millis);
  const isToday = date.toDateString() === new Date(now()).toDateString();
  const time = date.toLocaleTimeString("en-GB");
  return isToday ? time : `${date.toLocaleDateString("en-CA")} ${time}`;
}

/** The name of the time zone of all local times. */
export function zone() {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** The time in UTC, for a tooltip. */
export function utc(millis) {
  if (millis === null || millis === undefined) return "";
  return millis < SIMULATED_MILLIS_MAX ? `${millis} ms after the start of the simulation` : new Date(millis).toISOString();
}
