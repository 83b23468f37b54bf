// A table of any length: only the rows in view, and some around them, are in the document.

import { make, renew } from "./elements.js";

/** Rows in the document. */
const ROWS_MAX = 60;
/** Height of a row in pixels, as in the style sheet. */
const HIGH = 34;
const BEFORE = 20;

export class LongTable {
  #columns;
  #total = 0;
  #row = () => null;

  /** `columns` are [heading, cell of a row, class]; each row must be one line high. */
  constructor({ label, columns }) {
    this.#columns = columns;
    this.body = make("tbody");
    const head = columns.map(([heading, , kind]) => make("th", { scope: "col", class: kind }, heading));
    this.table = make("table", {}, make("thead", {}, make("tr", { "aria-rowindex": "1" }, head)), this.body);
    this.element = make("div", { class: "scroll long", tabindex: "0", role: "region", "aria-label": label, scroll: () => this.draw() }, this.table);
  }

  /** Sets the number of rows; `row` returns the row at an index. */
  show(total, row) {
    this.#total = total;
    this.#row = row;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.min(Math.floor(this.element.scrollTop / HIGH) - BEFORE, this.#total - ROWS_MAX));
    const last = Math.min(this.#total, first + ROWS_MAX);
    // The heading counts as a row.
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
