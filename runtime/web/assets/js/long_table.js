// A table of any length: the rows that are in view are in the document, with some around them, and the others are counted.
// Owns which rows those are. Does not own what stands in them.

import { make, renew } from "./elements.js";

/** Rows in the document. */
const ROWS_MAX = 60;
/** Pixels of a row, as the style sheet has it. */
const HIGH = 34;
const BEFORE = 20;

export class LongTable {
  #columns;
  #total = 0;
  #row = () => null;

  /** `columns` are [heading, cell of a row, class]; a row is one line high. */
  constructor({ label, columns }) {
    this.#columns = columns;
    this.body = make("tbody");
    const head = columns.map(([heading, , kind]) => make("th", { scope: "col", class: kind }, heading));
    this.table = make("table", {}, make("thead", {}, make("tr", { "aria-rowindex": "1" }, head)), this.body);
    this.element = make("div", { class: "scroll long", tabindex: "0", role: "region", "aria-label": label, scroll: () => this.draw() }, this.table);
  }

  /** Shows so many rows; `row` gives the one at a place. */
  show(total, row) {
    this.#total = total;
    this.#row = row;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.min(Math.floor(this.element.scrollTop / HIGH) - BEFORE, this.#total - ROWS_MAX));
    const last = Math.min(this.#total, first + ROWS_MAX);
    // The heading is a row, too.
    this.table.setAttribute("aria-rowcount", String(this.#total + 1));
    const rows = [];
    for (let at = first; at < last; at += 1) {
      const row = this.#row(at);
      rows.push(make("tr", { "aria-rowindex": String(at + 2) }, this.#columns.map(([, cell, kind]) => make("td", { class: kind }, row === null ? "…" : cell(row) ?? ""))));
    }
    renew(this.body, rows);
    this.table.style.marginTop = `${first * HIGH}px`;
    this.table.style.marginBottom = `${(this.#total - last) * HIGH}px`;
  }
}
