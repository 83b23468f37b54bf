// Builds elements. User-supplied text only ever becomes text nodes and attributes; nothing here parses markup.

import { count } from "./format.js";
import { BASE, ofRecording } from "./net.js";

/** Makes an element: `make("a", { href: "/jobs", class: "id" }, "all jobs")`. A function becomes a listener of the event. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A link within the page that keeps the current recording. */
export function link(href, ...children) {
  return make("a", { href: ofRecording(href), "data-view": true }, ...children);
}

/** A link to the page of a queue. */
export function queueLink(queue) {
  return link(`/queues/${encodeURIComponent(queue)}`, queue);
}

const IDS = /\b(?:job_\d{4,}(?:_[mr]_\d{4,}(?:\.\d+)?)?|worker_\d{4,})\b/g;

/** Returns the address of the view of a job, task, attempt or worker. */
export function href(id) {
  const found = /^(job_\d+)(_[mr]_\d+)?/.exec(id);
  if (!found) return id.startsWith("worker_") ? `/workers/${id}` : "/";
  return found[2] ? `/jobs/${found[1]}/tasks/${found[0]}` : `/jobs/${found[1]}`;
}

/** A sentence in which the IDs of jobs, tasks and workers are links. */
export function sentence(text) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(IDS)) {
    parts.push(text.slice(from, found.index), link(href(found[0]), found[0]));
    from = found.index + found[0].length;
  }
  parts.push(text.slice(from));
  return make("span", {}, parts.filter((part) => part !== ""));
}

/** The state of a job, task, attempt or worker; its first word is the class that styles it. */
export function state(words) {
  return make("span", { class: `state ${words.split(/[ ,]/)[0]}` }, words);
}

/** Progress of the maps or reduces of a job. */
export function progress(phase, kind) {
  if (phase.tasks === 0) return make("span", { class: "quiet" }, "–");
  const done = make("b");
  done.style.width = `${phase.percent}%`;
  const naps = [
    phase.suspended ? `${phase.suspended} suspended` : null,
    phase.checkpointed ? `${phase.checkpointed} checkpointed` : null,
  ].filter(Boolean);
  const words = `${count(phase.done)}/${count(phase.tasks)}${naps.length ? ` (${naps.join(", ")})` : ""}`;
  return make("span", { class: `progress ${kind}`, title: `${phase.percent} % of the bytes` }, make("i", { "aria-hidden": "true" }, done), words);
}

/** A table with a name for screen readers; `columns` are [heading, cell of a row, class, sort field]. With `sorting`, headings with a sort field are buttons. `below` makes a second row below a row, or none. */
export function table(name, columns, rows, empty, sorting, below = null) {
  if (rows.length === 0) return make("div", { class: "scroll" }, make("p", { class: "empty" }, empty));
  const head = columns.map(([heading, , kind, field]) => (sorting && field ? sortHead(heading, kind, field, sorting) : make("th", { scope: "col", class: kind }, heading)));
  const body = rows.map((row) => [make("tr", {}, columns.map(([, cell, kind]) => make("td", { class: kind }, cell(row) ?? ""))), below?.(row)]);
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)));
}

/** A heading that sorts: first click descending, second ascending, third in the order of the server. */
function sortHead(heading, kind, field, sorting) {
  const order = { [`-${field}`]: "descending", [field]: "ascending" }[sorting.by];
  const choose = () => sorting.choose({ [`-${field}`]: field, [field]: "" }[sorting.by] ?? `-${field}`);
  const sign = { descending: " \u25be", ascending: " \u25b4" }[order] ?? "";
  return make("th", { scope: "col", class: kind, "aria-sort": order ?? "none" },
    make("button", { type: "button", class: "plain", click: choose }, heading, make("span", { "aria-hidden": "true" }, sign)));
}

/** A figure with a label above it and details below; with an address, a link to what it counts. */
export function card(label, figure, more, address = null) {
  const inside = [make("div", { class: "label" }, label), make("div", { class: "figure" }, figure), make("div", { class: "more" }, more)];
  return address === null ? make("div", { class: "card" }, inside) : make("a", { class: "card", href: ofRecording(address), "data-view": true }, inside);
}

/** A link that saves the table at a path of the API, with all its rows, as comma-separated values. */
export function csvLink(path, words = "Save as csv") {
  const [route, query] = path.split("?");
  const asked = new URLSearchParams(query);
  asked.set("format", "csv");
  asked.delete("limit");
  return make("a", { href: `${BASE}${ofRecording(`${route}?${asked}`)}`, download: "" }, words);
}

/** The columns with a value in some row, and the one that the table is sorted by. */
export function withValues(columns, rows, by = "") {
  const isEmpty = (cell) => cell === null || cell === "" || cell === "–";
  return columns.filter(([, cell, , field]) => (field && by.endsWith(field)) || rows.some((row) => !isEmpty(cell(row))));
}

/** A list of names and values, in two columns where there is room; empty values are left out. */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return make("dl", { class: "facts" }, shown.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

/** Replaces the content of an element, but keeps equal nodes, so that selections and focus survive a refresh. */
export function renew(place, ...children) {
  const fresh = make("div", {}, ...children);
  merge(place, fresh);
}

function merge(old, fresh) {
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((node, at) => {
    const known = before[at];
    if (!known) old.append(node);
    else if (known.isEqualNode(node)) return;
    else if (known.nodeType === 1 && node.nodeType === 1 && known.tagName === node.tagName && !known.keep && !listens(node)) {
      for (const { name } of [...known.attributes]) if (!node.hasAttribute(name)) known.removeAttribute(name);
      for (const { name, value } of [...node.attributes]) if (known.getAttribute(name) !== value) set(known, name, value);
      merge(known, node);
    } else if (!known.keep) known.replaceWith(node);
  });
  before.slice(after.length).forEach((node) => node.keep || node.remove());
}

/** The content security policy forbids style attributes; the property is allowed. */
function set(element, name, value) {
  if (name === "style") element.style.cssText = value;
  else element.setAttribute(name, value);
}

/** Nodes with listeners are replaced, since a listener may refer to old data. */
function listens(node) {
  return ["BUTTON", "INPUT", "SELECT", "DIALOG"].includes(node.tagName);
}
