// The legend of a timeline, drawn with the code that draws the timeline.

import { make } from "../elements.js";
import { Scale, draw, palette } from "./draw.js";
import { CHECKPOINTED, FAILED, KILLED, Model, SUSPENDED } from "./model.js";

const SIGNS = [
  ["map", { kind: "map", end: 4 }],
  ["reduce", { kind: "reduce", end: 4 }],
  ["being started", { kind: "map", end: 4, starting: 60 }],
  ["suspended, in memory", { end: SUSPENDED, nap: true }],
  ["checkpointed, in files", { end: CHECKPOINTED, nap: false }],
  ["killed, work lost", { kind: "map", end: KILLED }],
  ["failed", { kind: "map", end: FAILED }],
];
const WIDTH = 26;

/** The entries of the legend; on the page of a job (`isOfJob`), other jobs in its slots have a colour of their own. */
export function legend(isOfJob) {
  const element = make("div", { class: "legend" });
  const paint = () => element.replaceChildren(...SIGNS.map(([words, sign]) => make("span", {}, picture(element, sign), words)),
    ...(isOfJob ? [make("span", {}, make("i", { class: "swatch", "aria-hidden": "true" }), "another job")] : []));
  requestAnimationFrame(paint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  return element;
}

function picture(element, { kind = "map", end, nap, starting = 0 }) {
  const canvas = make("canvas", { width: WIDTH * 2, height: 36, "aria-hidden": "true" });
  const isNap = nap !== undefined;
  const stints = { start: [0], length: [isNap ? 30 : 100], starting: [starting], lane: [0], job: [1], task: [0], attempt: [1], end: [end], preemption: [-1] };
  const naps = isNap ? [{ start: 30, length: 70, attempt: "job_0001_m_0000.1", is_suspended: nap }] : [];
  const answer = { base_micros: 0, until_micros: 100, lanes: [{ worker: "", worker_name: "", kind, number: 0 }], stints, naps, preemptions: [], ends: {}, restores: {} };
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  // Hides the axis above the sample.
  context.translate(0, -26);
  const model = new Model(answer, true);
  draw(context, model, new Scale(0, 100, 0, WIDTH), { top: 0, height: 44, selected: -1, colours: palette(element), label: null });
  return canvas;
}
