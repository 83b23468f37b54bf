// Reads a timeline in columns: typed arrays over the response buffer. docs/rest-api.md describes the format.

import { get } from "../net.js";

const MAGIC = "NAPTLN1\0";
const HEAD_BEGIN = 12;
const ARRAYS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i8: Int8Array, i16: Int16Array, i32: Int32Array };
const TIMES = ["start", "length", "starting"];
const FORM = { accept: "application/vnd.napreduce.timeline", read: async (response) => read(await response.arrayBuffer()) };

/** Requests a timeline; the path is relative to the base of the REST API. */
export function getTimeline(question, { isKept = true } = {}) {
  return get(question, { isKept, form: FORM });
}

function read(answer) {
  const text = (from, until) => new TextDecoder().decode(new Uint8Array(answer, from, until - from));
  if (answer.byteLength < HEAD_BEGIN || text(0, MAGIC.length) !== MAGIC) throw new Error("the server sent no timeline");
  const begin = HEAD_BEGIN + new DataView(answer).getUint32(MAGIC.length, true);
  const { columns, rows, unit_micros: unit, ...head } = JSON.parse(text(HEAD_BEGIN, begin));
  const stints = {};
  for (const { name, type, offset } of columns) {
    const column = new ARRAYS[type](answer, begin + offset, rows);
    stints[name] = TIMES.includes(name) ? inMicros(column, unit) : column;
  }
  return { ...head, stints };
}

/** Open ends do not fit in 32 bits once they grow. */
function inMicros(column, unit) {
  const micros = new Float64Array(column.length);
  for (let row = 0; row < column.length; row += 1) micros[row] = column[row] * unit;
  return micros;
}
