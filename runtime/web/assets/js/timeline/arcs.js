// Draws arcs from the stint that released a slot to the stint that got it; colour and dashes show the primitive.

import { CHECKPOINTED, KILLED, SUSPENDED } from "./model.js";

const ARCS_MAX = 1000;
const DASHES = { [SUSPENDED]: [], [CHECKPOINTED]: [5, 3], [KILLED]: [2, 3] };

/** Draws the arcs with an end in view. */
export function arcs(context, model, scale, first, last, y, high, colours) {
  const { start, length, end } = model.answer.stints;
  let drawn = 0;
  for (const { from, to } of model.links) {
    const [one, other] = [model.rowOf[from], model.rowOf[to]];
    if (Math.max(one, other) < first || Math.min(one, other) >= last) continue;
    const [x, until] = [scale.x(start[from] + length[from]), scale.x(start[to])];
    if (Math.max(x, until) < scale.left || Math.min(x, until) > scale.left + scale.width) continue;
    if (drawn > ARCS_MAX) return;
    drawn += 1;
    const ends = [x, y(one) + high / 2, until, y(other) + high / 2];
    // A light outline keeps the arc visible on bars.
    for (const [colour, wide, dashes] of [[colours.panel, 4, []], [end[from] === KILLED ? colours.bad : colours.wait, 1.5, DASHES[end[from]] ?? []]]) {
      context.strokeStyle = colour;
      context.lineWidth = wide;
      context.setLineDash(dashes);
      arc(context, ...ends, high);
    }
  }
  context.setLineDash([]);
}

/** Within a row, an arc rises above both bars; between rows it bends to the right. */
function arc(context, x, y, until, other, high) {
  const reach = y === other ? 0 : Math.min(40, 8 + Math.abs(other - y) / 3);
  const [lift, room] = y === other ? [high * 0.6, Math.max(0, 10 - (until - x)) / 2] : [0, 0];
  context.beginPath();
  context.moveTo(x - room, y);
  context.bezierCurveTo(x - room + reach, y - lift, until + room + reach, other - lift, until + room, other);
  context.stroke();
  const side = reach > 0 ? 5 : 0;
  const tip = until + room;
  context.beginPath();
  context.moveTo(tip + (side || -4), other - (side ? 4 : 2));
  context.lineTo(tip, other);
  context.lineTo(tip + (side || 1), other + (side ? 4 : -5));
  context.stroke();
}
