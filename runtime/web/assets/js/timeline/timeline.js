// A timeline of slot occupancy: scrolled, zoomed and read out with mouse, wheel and keys, and a table for screen readers.

import { make, renew, sentence } from "../elements.js";
import { count, moment, short, span } from "../format.js";
import { LongTable } from "../long_table.js";
import { CloserLook } from "./closer.js";
import { AXIS, ROW, Scale, draw, palette } from "./draw.js";
import { COLOURINGS, Groups, groupLegend } from "./groups.js";
import { legend } from "./legend.js";
import { ENDS, Model } from "./model.js";

const LABELS = 130;
const NARROW = 70;
const HEIGHT_MIN = 96;
/** Limit of the height on paper in pixels; browsers do not draw much higher canvases. */
const PRINTED_MAX = 8000;
const STEP_MILLIS = 1000;
/** In an older answer, an open stint may have ended since. */
const KNOWN_MILLIS = 15_000;

const PAGE_KEYS = ["h", "j", "k", "l", "n", "p", "t", "+", "-", "0"];
/** The timelines of the page, and the one that had the focus last. */
const shown = [];
let focused = null;

/** Whether a key of the page is not meant for a field, a menu or a dialog. */
function isFree({ target }) {
  return !target.closest?.("input, select, textarea, dialog, [contenteditable]") && document.querySelector("dialog[open]") === null;
}

export class Timeline {
  #model = null;
  /** The complete answer, and the one that is drawn: the same, or a closer look at a part. */
  #whole = null;
  #answer = null;
  #part = null;
  #answered = 0;
  #window = null;
  #selected = -1;
  #byTask;
  #colouring = "";
  #groups = new Groups();
  #isTable = false;
  #isPrinted = false;
  /** Keys that select, zoom or swap work from anywhere on the page; arrows scroll it unless the timeline has the focus. */
  #pageKey = (event) => {
    if (event.defaultPrevented || !PAGE_KEYS.includes(event.key) || !isFree(event)) return;
    // Of several timelines, the one that had the focus last, or else the first.
    if (this !== (focused ?? shown[0])) return;
    this.#key(event);
    if (event.defaultPrevented && !this.scroller.hidden) this.canvas.focus({ preventScroll: true });
  };
  #print = ({ type }) => {
    this.#isPrinted = type === "beforeprint";
    this.draw();
  };

  /**
   * `own` is the number of the job on whose page the timeline is; `swapped` is called when the rows change between slots and tasks;
   * `closer` requests a window, from and until in milliseconds, of a timeline that is too large for one answer. With `isAddressed`, bars can
   * be coloured by job, queue or user, and the address keeps that choice and the one between slots and tasks.
   */
  constructor({ label, byTask = false, followsMillis = null, own = null, swapped = null, closer = null, isAddressed = false }) {
    this.#byTask = byTask;
    this.isAddressed = isAddressed;
    const colouring = new URLSearchParams(location.search).get("colour") ?? "";
    if (isAddressed && COLOURINGS.some(([name]) => name === colouring)) this.#colouring = colouring;
    this.own = own;
    this.swapped = swapped;
    this.follows = followsMillis;
    this.closer = closer && new CloserLook(closer, (part, window) => this.#put(part, window));
    this.canvas = make("canvas", { tabindex: "0", role: "application", "aria-label": `${label}. Keys: h l j k select, n p naps, + - 0 zoom, t table` });
    this.canvas.keep = true;
    this.spacer = make("div", { class: "spacer" });
    this.scroller = make("div", { class: "view", scroll: () => this.draw() }, this.canvas, this.spacer);
    this.description = make("div", { class: "said quiet" }, "Point at a bar, or select one with h and l.");
    this.table = new LongTable({ label: `${label}, as a table`, columns: this.#columns() });
    this.inView = make("p", { class: "under" });
    this.thinned = make("p", { class: "under", hidden: true });
    this.rows = make("div", { hidden: true }, this.table.element, this.inView);
    this.choices = [["By slot", false], ["By task", true]].map(([words, isByTask]) => make("button", { type: "button", click: () => this.#choose(isByTask) }, words));
    const colours = make("select", { "aria-label": "Colour by", change: (event) => this.#colour(event.target.value) }, COLOURINGS.map(([name, words]) => make("option", { value: name }, `Colour: ${words.toLowerCase()}`)));
    colours.value = this.#colouring;
    this.groupLegend = make("div", { class: "legend" });
    this.asTable = make("button", { type: "button", "aria-pressed": "false", click: () => this.#toggleTable() }, "Table");
    this.element = make("div", {},
      make("div", { class: "bar" }, make("div", { class: "joined", role: "group", "aria-label": "Rows" }, this.choices), isAddressed ? colours : [], this.asTable,
        make("button", { type: "button", click: () => this.#zoom(0.5) }, "+"),
        make("button", { type: "button", click: () => this.#zoom(2) }, "−"),
        make("button", { type: "button", click: () => this.#all() }, "All")),
      make("div", { class: "timeline" }, this.description, this.scroller, this.rows), this.thinned, this.groupLegend, legend(own !== null));
    this.#mark();
    // Keys of the page reach the timeline through the document, where "g j" is one of the page's own.
    this.canvas.addEventListener("keydown", (event) => PAGE_KEYS.includes(event.key) || this.#key(event));
    this.canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.canvas.addEventListener("pointermove", (event) => this.#move(event));
    this.canvas.addEventListener("pointerdown", (event) => this.#grab(event));
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.scroller);
    this.canvas.addEventListener("focus", () => { focused = this; });
    shown.push(this);
    document.addEventListener("keydown", this.#pageKey);
    addEventListener("beforeprint", this.#print);
    addEventListener("afterprint", this.#print);
    this.moving = setInterval(() => this.#moveOn(), STEP_MILLIS);
  }

  get byTask() {
    return this.#byTask;
  }

  set byTask(byTask) {
    this.#byTask = byTask;
    if (!this.#model) return this.#mark();
    this.#build();
    this.#grow();
    this.#fillTable();
    this.draw();
  }

  leave() {
    clearInterval(this.moving);
    shown.splice(shown.indexOf(this), 1);
    if (focused === this) focused = null;
    document.removeEventListener("keydown", this.#pageKey);
    removeEventListener("beforeprint", this.#print);
    removeEventListener("afterprint", this.#print);
    this.resized.disconnect();
    this.closer?.leave();
  }

  /** Shows an answer and keeps the part in view. */
  show(answer) {
    if (answer === this.#whole) return;
    this.#whole = answer;
    // A closer look is kept until a newer one arrives.
    if (!this.#part || !answer.is_thinned) this.#put(answer, null);
    this.#look();
  }

  /** Draws an answer; for a closer look, `window` is its part in microseconds relative to the whole. */
  #put(answer, part) {
    const before = this.#model && this.#selected >= 0 ? this.#key_of(this.#selected) : null;
    this.#answer = answer;
    this.#part = part;
    this.#answered = performance.now();
    this.#build();
    this.#selected = before === null ? -1 : this.#find(before);
    this.#sayThinned();
    if (this.#isTable) this.#fillTable();
    this.draw();
  }

  /** A timeline that is too large for one answer has no rows for tasks. */
  #build() {
    const groups = this.#colouring ? this.#groups.of(this.#answer, this.#colouring) : null;
    this.#model = new Model(this.#answer, this.#byTask && !this.#whole.is_thinned, this.own, groups);
    renew(this.groupLegend, groupLegend(groups));
    this.groupLegend.hidden = groups === null;
    this.#mark();
  }

  /** Presses the button of the rows in view. */
  #mark() {
    const isByTask = this.#model ? this.#model.byTask : this.#byTask;
    this.choices.forEach((button, at) => button.setAttribute("aria-pressed", String(isByTask === (at === 1))));
    this.choices[1].disabled = this.#whole?.is_thinned === true;
  }

  #sayThinned() {
    const { is_thinned: isThinned, stints, stints_total: total } = this.#answer;
    this.thinned.hidden = !this.#whole.is_thinned;
    this.thinned.textContent = isThinned
      ? `${count(total)} stretches of work are drawn as ${count(stints.start.length)} bars, by slot: zoom in to see each, and the naps between them`
      : `Each stretch of work is drawn, of ${count(this.#whole.stints_total)} in all`;
  }

  /** Requests more detail for the part in view, if the timeline is too large for one answer. */
  #look() {
    if (!this.closer || !this.#whole?.is_thinned) return;
    const { from, until } = this.#scale();
    const isAll = !this.#window || (from <= 0 && until >= this.#model.span);
    const isBeyond = this.#part && (from < this.#part[0] || until > this.#part[1]);
    if (this.#part && (isAll || isBeyond)) this.#put(this.#whole, null);
    if (isAll) this.closer.leave();
    else this.closer.at(this.#whole, from, until);
  }

  /** Advances the current time between answers. */
  #moveOn() {
    if (!this.#model || document.hidden || !(this.follows || this.#model.goesOn)) return;
    this.#grow();
    this.draw();
  }

  #grow() {
    this.#model.grow(1000 * Math.min(performance.now() - this.#answered, KNOWN_MILLIS));
  }

  /** A key that identifies a stint in later answers. */
  #key_of(stint) {
    return `${this.#model.attempt(stint)}@${this.#model.answer.stints.start[stint] + this.#model.answer.base_micros}`;
  }

  #find(key) {
    for (let stint = 0; stint < this.#model.length; stint += 1) if (this.#key_of(stint) === key) return stint;
    return -1;
  }

  #scale() {
    const wide = this.scroller.clientWidth;
    const left = wide < 520 ? NARROW : LABELS;
    const all = this.follows ? this.follows * 1000 : this.#model.span;
    // A window that follows the clock ends now, even if it is empty.
    const from = this.follows ? this.#model.span - all : 0;
    const [first, last] = this.#window ?? [from, this.#model.span];
    return new Scale(first, last, left, Math.max(40, wide - left - 8));
  }

  draw() {
    if (!this.#model || !this.element.isConnected || this.#isTable) return;
    const begin = performance.now();
    const wide = this.scroller.clientWidth;
    const whole = AXIS + this.#model.rows.length * ROW + 8;
    // Paper cannot be scrolled.
    const most = this.#isPrinted ? PRINTED_MAX : Math.round(innerHeight * 0.6);
    const high = Math.max(HEIGHT_MIN, Math.min(whole, most));
    const ratio = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(wide * ratio) || this.canvas.height !== Math.round(high * ratio)) {
      this.canvas.width = Math.round(wide * ratio);
      this.canvas.height = Math.round(high * ratio);
      this.canvas.style.height = `${high}px`;
    }
    this.spacer.style.height = `${Math.max(0, whole - high)}px`;
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(context, this.#model, this.#scale(), {
      top: this.#isPrinted ? 0 : this.scroller.scrollTop, height: high, selected: this.#selected, colours: palette(this.element), label: this.#label(),
    });
    if (this.#model.length === 0) this.#nothing(context, wide, high);
    this.canvas.dataset.stints = String(this.#model.length);
    this.canvas.dataset.naps = String(this.#model.naps.length);
    this.canvas.dataset.links = String(this.#model.links.length);
    this.canvas.dataset.drawMillis = (performance.now() - begin).toFixed(2);
  }

  #nothing(context, wide, high) {
    context.textAlign = "center";
    context.fillStyle = palette(this.element).quiet;
    context.font = "14px system-ui, sans-serif";
    context.fillText("No slot was held.", wide / 2, high / 2);
  }

  /** The labels of ticks: local times of a window that follows the clock, else times since the start, with enough digits to differ. */
  #label() {
    const base = this.#model.answer.base_micros;
    if (this.follows) {
      const zone = -new Date(base / 1000).getTimezoneOffset() * 60e6;
      const digits = (step) => (step < 1 ? { second: "2-digit", fractionalSecondDigits: 3 } : step < 60 ? { second: "2-digit" } : {});
      const words = (micros, step) => new Date((base + micros) / 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...digits(step) });
      return { origin: base + zone, words };
    }
    return { origin: 0, words: (micros, step) => (step < 1 ? `${(micros / 1e6).toFixed(Math.ceil(-Math.log10(step) - 1e-9))} s` : span(micros / 1000).replace(/ 0 (s|min)$/, "")) };
  }

  #choose(byTask) {
    if (byTask === this.#byTask) return;
    this.byTask = byTask;
    this.#keepInAddress("by", byTask ? "task" : "slot");
    this.swapped?.();
  }

  #colour(colouring) {
    this.#colouring = colouring;
    this.#keepInAddress("colour", colouring);
    if (!this.#model) return;
    this.#build();
    this.#grow();
    this.draw();
  }

  #keepInAddress(name, value) {
    if (!this.isAddressed) return;
    const params = new URLSearchParams(location.search);
    if (value) params.set(name, value);
    else params.delete(name);
    history.replaceState(null, "", `${location.pathname}${params.size ? `?${params}` : ""}`);
  }

  /** Shows the last `millis` milliseconds from the next answer on. */
  follow(millis) {
    this.follows = millis;
    this.#window = null;
    this.#keepInAddress("last", `${millis / 60_000}m`);
  }

  #toggleTable() {
    this.#isTable = !this.#isTable;
    this.asTable.setAttribute("aria-pressed", String(this.#isTable));
    this.scroller.hidden = this.#isTable;
    this.rows.hidden = !this.#isTable;
    if (this.#isTable) this.#fillTable();
    else this.draw();
  }

  #fillTable() {
    if (!this.#isTable) return;
    const { stints } = this.#model.answer;
    const scale = this.#scale();
    const inView = [];
    for (let stint = 0; stint < this.#model.length; stint += 1) {
      if (stints.start[stint] <= scale.until && stints.start[stint] + stints.length[stint] >= scale.from) inView.push(stint);
    }
    inView.sort((one, other) => stints.start[one] - stints.start[other]);
    this.table.show(inView.length, (row) => inView[row]);
    this.inView.textContent = `${count(inView.length)} of ${count(this.#model.length)} ${this.#answer.is_thinned ? "bars" : "stretches"} are in view`;
  }

  #columns() {
    const answer = () => this.#model.answer;
    return [
      ["Attempt", (stint) => sentence(this.#model.attempt(stint)), "id"],
      ["From", (stint) => moment((answer().base_micros + answer().stints.start[stint]) / 1000), "id"],
      ["Work", (stint) => short(answer().stints.length[stint]), "number"],
      ["End", (stint) => ENDS[answer().stints.end[stint]]],
      ["In words", (stint) => sentence(this.#model.describe(stint)), "text"],
    ];
  }

  #zoom(factor, around = null) {
    if (!this.#model) return;
    const { from, until } = this.#scale();
    const centre = around ?? (from + until) / 2;
    const least = 1000;
    const wide = Math.max(least, Math.min((until - from) * factor, Math.max(this.#model.span, (this.follows ?? 0) * 1000)));
    const share = (centre - from) / (until - from);
    this.#window = [centre - share * wide, centre + (1 - share) * wide];
    this.#fillTable();
    this.draw();
    this.#look();
  }

  #pan(share) {
    const { from, until } = this.#scale();
    const by = (until - from) * share;
    this.#window = [from + by, until + by];
    this.draw();
    this.#look();
  }

  #all() {
    this.#window = null;
    this.#fillTable();
    this.draw();
    this.#look();
  }

  #wheel(event) {
    if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaY) > Math.abs(event.deltaX)) {
      // With more rows than fit, the wheel scrolls; otherwise it zooms.
      if (this.scroller.scrollHeight > this.scroller.clientHeight + 4) return;
    }
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.#pan(event.deltaX / 800);
    else this.#zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, this.#scale().micros(event.offsetX));
  }

  #move(event) {
    if (!this.#model || event.buttons !== 0) return;
    const stint = this.#under(event);
    if (stint >= 0) this.#tell(stint);
  }

  #under(event) {
    const row = Math.floor((event.offsetY - AXIS + this.scroller.scrollTop) / ROW);
    const scale = this.#scale();
    return this.#model.at(row, scale.micros(event.offsetX), (3 * (scale.until - scale.from)) / scale.width);
  }

  /** Dragging moves the window; a click selects. */
  #grab(event) {
    if (!this.#model) return;
    const { from, until, width } = this.#scale();
    const begin = event.offsetX;
    let moved = false;
    this.canvas.setPointerCapture(event.pointerId);
    const drag = (now) => {
      moved ||= Math.abs(now.offsetX - begin) > 3;
      const by = ((begin - now.offsetX) / width) * (until - from);
      if (moved) this.#window = [from + by, until + by];
      this.draw();
    };
    const drop = (now) => {
      this.canvas.removeEventListener("pointermove", drag);
      if (moved) this.#look();
      else this.#select(this.#under(now));
    };
    this.canvas.addEventListener("pointermove", drag);
    this.canvas.addEventListener("pointerup", drop, { once: true });
  }

  #select(stint) {
    this.#selected = stint;
    if (stint >= 0) {
      this.#tell(stint);
      document.getElementById("spoken").textContent = this.#model.describe(stint);
      const y = this.#model.rowOf[stint] * ROW;
      const { scrollTop, clientHeight } = this.scroller;
      if (y < scrollTop) this.scroller.scrollTop = y;
      else if (y + ROW > scrollTop + clientHeight - AXIS) this.scroller.scrollTop = y + ROW - clientHeight + AXIS;
    }
    this.draw();
  }

  #tell(stint) {
    this.description.classList.remove("quiet");
    this.description.replaceChildren(sentence(this.#model.describe(stint)));
  }

  #key(event) {
    if (!this.#model || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      h: () => this.#step(-1), l: () => this.#step(1), j: () => this.#row(1), k: () => this.#row(-1),
      n: () => this.#nap(1), p: () => this.#nap(-1), t: () => this.#toggleTable(),
      "+": () => this.#zoom(0.5), "-": () => this.#zoom(2), 0: () => this.#all(),
      ArrowLeft: () => this.#pan(-0.2), ArrowRight: () => this.#pan(0.2),
      ArrowUp: () => this.scroller.scrollBy(0, -ROW), ArrowDown: () => this.scroller.scrollBy(0, ROW),
      Escape: () => this.#select(-1),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
    if ("hljknp".includes(event.key)) this.#reveal();
  }

  /** Scrolls the selected bar into view, in the timeline and on the page. */
  #reveal() {
    if (this.#selected < 0) return;
    const { start, length } = this.#model.answer.stints;
    const { from, until } = this.#scale();
    const [begin, end] = [start[this.#selected], start[this.#selected] + length[this.#selected]];
    if (end < from || begin > until) {
      this.#window = [begin - (until - from) / 2, begin + (until - from) / 2];
      this.draw();
      this.#look();
    }
    this.description.scrollIntoView({ block: "nearest" });
    const top = this.canvas.getBoundingClientRect().top + AXIS + this.#model.rowOf[this.#selected] * ROW - this.scroller.scrollTop;
    if (top < AXIS) scrollBy(0, top - AXIS);
    else if (top + ROW > innerHeight) scrollBy(0, top + ROW - innerHeight);
  }

  #step(by) {
    if (this.#model.length === 0) return;
    if (this.#selected < 0) return this.#select(this.#model.rows.find((row) => row.stints.length)?.stints[0] ?? -1);
    const row = this.#model.rows[this.#model.rowOf[this.#selected]].stints;
    this.#select(row[Math.min(row.length - 1, Math.max(0, row.indexOf(this.#selected) + by))]);
  }

  #row(by) {
    if (this.#selected < 0) return this.#step(0);
    const { start } = this.#model.answer.stints;
    const next = this.#model.rowOf[this.#selected] + by;
    if (next < 0 || next >= this.#model.rows.length) return;
    this.#select(this.#model.at(next, start[this.#selected], Number.MAX_SAFE_INTEGER));
  }

  /** Naps that follow stints which ended with a preemption. */
  #nap(by) {
    const { naps } = this.#model;
    if (naps.length === 0) return;
    const at = naps.indexOf(this.#selected);
    this.#select(naps[(at < 0 ? (by > 0 ? 0 : naps.length - 1) : at + by + naps.length) % naps.length]);
  }
}
