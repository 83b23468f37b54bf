// Makes elements. What strangers wrote reaches the page as text alone: nothing here reads markup.
// Owns building and the links in sentences. Does not own what a page shows.

import { count } from "./format.js";
import { ofRecording } from "./net.js";

/** An element: `make("a", { href: "/jobs", class: "id" }, "all jobs")`. Functions listen. */
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

/** A link within the page, about the same recording. */
export function link(href, ...children) {
  return make("a", { href: ofRecording(href), "data-view": true }, ...children);
}

const IDS = /\b(?:job_\d{4,}(?:_[mr]_\d{4,}(?:\.\d+)?)?|worker_\d{4,})\b/g;

/** Where an ID leads. */
export function href(id) {
  const found = /^(job_\d+)(_[mr]_\d+)?/.exec(id);
  if (!found) return id.startsWith("worker_") ? `/workers/${id}` : "/";
  return found[2] ? `/jobs/${found[1]}/tasks/${found[0]}` : `/jobs/${found[1]}`;
}

/** A sentence in which jobs, tasks and workers are links. */
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

/** The state of a job, a task, an attempt or a worker; its first word says how it looks. */
export function state(words) {
  return make("span", { class: `state ${words.split(/[ ,]/)[0]}` }, words);
}

/** How far the maps or the reduces of a job are. */
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

/** A table; `columns` are [heading, cell of a row, class, what the server sorts by]. With `sorting` the heads of those are buttons. */
export function table(columns, rows, empty, sorting) {
  if (rows.length === 0) return make("div", { class: "scroll" }, make("p", { class: "empty" }, empty));
  const head = columns.map(([heading, , kind, field]) => (sorting && field ? sortHead(heading, kind, field, sorting) : make("th", { scope: "col", class: kind }, heading)));
  const body = rows.map((row) => make("tr", {}, columns.map(([, cell, kind]) => make("td", { class: kind }, cell(row) ?? ""))));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" },
    make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)));
}

/** A head that sorts: downwards first, then upwards, then as the list comes. */
function sortHead(heading, kind, field, sorting) {
  const order = { [`-${field}`]: "descending", [field]: "ascending" }[sorting.by];
  const choose = () => sorting.choose({ [`-${field}`]: field, [field]: "" }[sorting.by] ?? `-${field}`);
  const sign = { descending: " \u25be", ascending: " \u25b4" }[order] ?? "";
  return make("th", { scope: "col", class: kind, "aria-sort": order ?? "none" },
    make("button", { type: "button", class: "plain", click: choose }, heading, make("span", { "aria-hidden": "true" }, sign)));
}

/** A figure, with what it is above it and what there is to add below. */
export function card(label, figure, more) {
  return make("div", { class: "card" }, make("div", { class: "label" }, label), make("div", { class: "figure" }, figure), make("div", { class: "more" }, more));
}

/** Names and what they are. */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return make("dl", { class: "facts" }, shown.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

/** Puts new content in the place of old, and leaves alone what is the same: selections and focus outlive a refresh. */
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

/** The policy of the page forbids styles made of text, and allows them as properties. */
function set(element, name, value) {
  if (name === "style") element.style.cssText = value;
  else element.setAttribute(name, value);
}

/** What listens may know of what it was made from. */
function listens(node) {
  return ["BUTTON", "INPUT", "SELECT", "DIALOG"].includes(node.tagName);
}
