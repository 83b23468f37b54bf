// Draws rows of stints and naps on a canvas; no sign relies on colour alone. All stints of a row become one line of pixels, so that
// 100,000 are drawn as fast as 100; stints that are wide enough get their signs on top.

import { arcs } from "./arcs.js";
import { GROUPS_MAX } from "./groups.js";
import { CHECKPOINTED, FAILED, KILLED, OPEN, SUSPENDED } from "./model.js";

export const ROW = 18;
export const GAP = 4;
export const AXIS = 26;
const SIGNS_MAX = 4000;
const NAMED = 56;
/** Least width of a bar with the letter of its group. */
const LETTERED = 16;

/** The current colours of the page, light or dark. */
export function palette(element) {
  const style = getComputedStyle(element);
  const named = (name) => style.getPropertyValue(name).trim();
  return {
    map: named("--map"), reduce: named("--reduce"), ink: named("--ink"), quiet: named("--quiet"), line: named("--line"),
    panel: named("--panel"), bad: named("--bad"), wait: named("--wait"), focus: named("--focus"), other: named("--other"),
    groups: Array.from({ length: GROUPS_MAX }, (_, place) => named(`--group-${place + 1}`)),
  };
}

function packed(colour) {
  const number = Number.parseInt(colour.slice(1), 16);
  return 0xff000000 | ((number & 0xff) << 16) | (number & 0xff00) | (number >> 16);
}

/** Scale and position: `left` is where time begins, in pixels of the page. */
export class Scale {
  constructor(from, until, left, width) {
    Object.assign(this, { from, until, left, width });
  }

  x(micros) {
    return this.left + ((micros - this.from) / (this.until - this.from)) * this.width;
  }

  micros(x) {
    return this.from + ((x - this.left) / this.width) * (this.until - this.from);
  }
}

/** Draws the part in view: the rows from `top` pixels on. */
export function draw(context, model, scale, { top, height, selected, colours, label }) {
  const { width, left } = scale;
  context.clearRect(0, 0, left + width, height);
  if (label) axis(context, scale, height, colours, label);
  const first = Math.floor(top / ROW);
  const last = Math.min(model.rows.length, Math.ceil((top + height - AXIS) / ROW));
  context.save();
  context.beginPath();
  context.rect(0, AXIS, left + width, height - AXIS);
  context.clip();
  const y = (row) => AXIS + row * ROW - top;
  labels(context, model, first, last, y, left, colours);
  context.beginPath();
  context.rect(left, AXIS, width, height - AXIS);
  context.clip();
  for (let row = first; row < last; row += 1) for (const nap of model.rows[row].naps) drawNap(context, scale, nap, y(row), colours);
  fill(context, model, scale, first, last, y, colours);
  signs(context, model, scale, first, last, y, colours);
  arcs(context, model, scale, first, last, y, ROW, colours);
  if (selected >= 0) outline(context, model, scale, selected, y, colours);
  context.restore();
}

function labels(context, model, first, last, y, left, colours) {
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.fillStyle = colours.quiet;
  for (let row = first; row < last; row += 1) context.fillText(model.rows[row].label, left - 8, y(row) + ROW / 2, left - 12);
}

/** Draws one line of pixels for each row, scaled to its height. */
function fill(context, model, scale, first, last, y, colours) {
  const { start, length, lane, job } = model.answer.stints;
  const pixels = Math.max(1, Math.round(scale.width));
  const rows = Math.max(0, last - first);
  if (rows === 0) return;
  const image = new ImageData(pixels, rows);
  const line = new Uint32Array(image.data.buffer);
  const tint = [packed(colours.map), packed(colours.reduce)];
  const other = packed(colours.other);
  const groups = colours.groups.map(packed);
  const colour = (stint) => {
    if (model.groups) return groups[model.groups.get(job[stint])?.place] ?? other;
    return isOfOther(model, stint) ? other : tint[model.isReduce[lane[stint]]];
  };
  const each = pixels / (scale.until - scale.from);
  for (let row = first; row < last; row += 1) {
    const offset = (row - first) * pixels;
    for (const stint of model.rows[row].stints) {
      const from = (start[stint] - scale.from) * each;
      const until = (start[stint] + length[stint] - scale.from) * each;
      if (until < 0 || from > pixels) continue;
      const begin = Math.max(0, Math.floor(from));
      // A gap of one pixel between neighbours, if there is room.
      const end = Math.min(pixels, until - from > 3 ? Math.ceil(until) - 1 : Math.max(begin + 1, Math.ceil(until)));
      const ink = colour(stint);
      // Most bars of a large timeline are a pixel wide: a call of fill() would cost more than the loop.
      for (let pixel = begin; pixel < end; pixel += 1) line[offset + pixel] = ink;
    }
  }
  const source = new OffscreenCanvas(pixels, rows);
  source.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  for (let row = first; row < last; row += 1) {
    context.drawImage(source, 0, row - first, pixels, 1, scale.left, y(row) + GAP / 2, scale.width, ROW - GAP);
  }
}

/** Whether a stint is of another job than that of the page. */
function isOfOther(model, stint) {
  return model.own !== null && model.answer.stints.job[stint] !== model.own;
}

/** The outcome of a stint that is wide enough to show it. */
function signs(context, model, scale, first, last, y, colours) {
  const { start, length, starting, end } = model.answer.stints;
  const shortest = (4 * (scale.until - scale.from)) / scale.width;
  let drawn = 0;
  for (let row = first; row < last; row += 1) {
    for (const stint of model.rows[row].stints) {
      if (length[stint] < shortest) continue;
      const x = scale.x(start[stint] + length[stint]);
      const wide = x - scale.x(start[stint]);
      if (x < scale.left || x - wide > scale.left + scale.width) continue;
      if (drawn > SIGNS_MAX) return;
      drawn += 1;
      const begun = scale.x(start[stint] + starting[stint]);
      pale(context, x - wide, begun, y(row) + GAP / 2, ROW - GAP, colours);
      const seen = Math.max(begun, scale.left);
      const words = wordsFor(context, model, stint, x - seen);
      const ink = !model.groups && isOfOther(model, stint) ? colours.ink : colours.panel;
      if (words) name(context, words, seen, x, y(row) + ROW / 2, ink);
      sign(context, end[stint], x, wide, y(row) + GAP / 2, ROW - GAP, colours);
    }
  }
}

/** The start of the process: paler, with a line where the work began. */
function pale(context, from, until, y, high, colours) {
  if (until - from < 2) return;
  context.fillStyle = colours.panel;
  context.globalAlpha = 0.5;
  context.fillRect(from, y, until - from, high);
  context.globalAlpha = 1;
  context.fillRect(until - 1, y, 1, high);
}

/** What fits into a bar: the name of the owner, or only the letter of its group. */
function wordsFor(context, model, stint, room) {
  const words = model.short(stint);
  if (!model.groups) return room > NAMED ? words : "";
  if (room > NAMED && context.measureText(words).width < room - 14) return words;
  return room > LETTERED ? model.groups.get(model.answer.stints.job[stint])?.letter ?? "" : "";
}

/** Words within a bar. */
function name(context, words, from, until, y, ink) {
  context.fillStyle = ink;
  context.textAlign = "left";
  context.fillText(words, from + 5, y, Math.max(1, until - from - 14));
}

function sign(context, end, x, wide, y, high, colours) {
  context.strokeStyle = colours.bad;
  context.lineWidth = 1.5;
  context.beginPath();
  if (end === KILLED) {
    for (let at = x - wide; at < x; at += 7) {
      context.moveTo(at, y + high);
      context.lineTo(Math.min(at + 6, x), y);
    }
  } else if (end === FAILED) {
    context.moveTo(x - 7, y + 3);
    context.lineTo(x - 1, y + high - 3);
    context.moveTo(x - 1, y + 3);
    context.lineTo(x - 7, y + high - 3);
  } else if (end === CHECKPOINTED) {
    context.arc(x, y + high / 2, 4, 0, 2 * Math.PI);
    context.fillStyle = colours.wait;
    context.fill();
    return;
  } else if (end === SUSPENDED) {
    context.strokeStyle = colours.wait;
    context.moveTo(x - 1, y);
    context.lineTo(x - 1, y + high);
  } else if (end === OPEN) {
    context.strokeStyle = colours.panel;
    context.moveTo(x - 4, y + 3);
    context.lineTo(x - 1, y + high / 2);
    context.lineTo(x - 4, y + high - 3);
  }
  context.stroke();
}

/** Suspended: hollow, hatched. Checkpointed: a dashed line. */
function drawNap(context, scale, nap, y, colours) {
  const from = Math.max(scale.left - 2, scale.x(nap.start));
  const until = Math.min(scale.left + scale.width + 2, scale.x(nap.start + nap.length));
  if (until <= from) return;
  context.strokeStyle = colours.wait;
  context.lineWidth = 1;
  context.save();
  context.beginPath();
  if (nap.is_suspended) {
    const [top, high] = [y + GAP, ROW - 2 * GAP];
    context.rect(from, top, until - from, high);
    context.stroke();
    context.clip();
    for (let at = from - high; at < until; at += 6) {
      context.moveTo(at, top + high);
      context.lineTo(at + high, top);
    }
  } else {
    context.setLineDash([5, 4]);
    context.moveTo(from, y + ROW / 2);
    context.lineTo(until, y + ROW / 2);
  }
  context.stroke();
  context.restore();
}

function outline(context, model, scale, stint, y, colours) {
  const { start, length } = model.answer.stints;
  const x = scale.x(start[stint]);
  context.strokeStyle = colours.focus;
  context.lineWidth = 2.5;
  context.strokeRect(x - 1.5, y(model.rowOf[stint]) + 0.5, Math.max(3, scale.x(start[stint] + length[stint]) - x) + 2, ROW - 1);
}

/** Distances between ticks in seconds, from a microsecond to ten years. */
const STEPS = [
  ...[-6, -5, -4, -3, -2, -1].flatMap((power) => [1, 2, 5].map((digit) => Number(`${digit}e${power}`))),
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
  ...[2, 7, 30, 90, 365, 3650].map((days) => days * 86_400),
];
/** Minimum distance of ticks, and of labels, in pixels. */
const TICK = 64;
const APART = 16;

/** The smallest step whose ticks and labels are far enough apart. */
function stepOf(context, scale, label) {
  const each = scale.width / ((scale.until - scale.from) / 1e6);
  const wide = (step) => Math.max(...[scale.from, scale.until].map((micros) => context.measureText(label.words(micros, step)).width));
  return STEPS.find((step) => each * step >= TICK && each * step >= wide(step) + APART) ?? STEPS.at(-1);
}

/** Ticks at whole steps since `label.origin`, in microseconds before the start of the timeline. */
function axis(context, scale, height, colours, label) {
  context.font = "11px system-ui, sans-serif";
  const step = stepOf(context, scale, label);
  const origin = label.origin;
  context.textBaseline = "middle";
  let free = -Infinity;
  // Multiplied, since repeated addition of tenths drifts.
  for (let tick = Math.ceil((scale.from + origin) / 1e6 / step); tick * step * 1e6 - origin <= scale.until; tick += 1) {
    const micros = Math.round(tick * step * 1e6) - origin;
    const x = Math.round(scale.x(micros)) + 0.5;
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, AXIS - 6);
    context.lineTo(x, height);
    context.stroke();
    context.fillStyle = colours.quiet;
    const words = label.words(micros, step);
    const wide = context.measureText(words).width;
    const begin = Math.max(scale.left, Math.min(x - wide / 2, scale.left + scale.width - wide));
    if (begin < free) continue;
    context.textAlign = "left";
    context.fillText(words, begin, AXIS / 2);
    free = begin + wide + APART;
  }
}
