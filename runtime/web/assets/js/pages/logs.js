// Logs of attempts, piece by piece. They are text, whatever is in them.
// Owns reading on in one. Does not own which attempts there are.

import { make } from "../elements.js";
import { bytes } from "../format.js";
import { text } from "../net.js";

/** A log, and how far it has been read. */
export class Log {
  #attempt;
  #stream;
  #next = 0;

  constructor(attempt, stream) {
    this.#attempt = attempt;
    this.#stream = stream;
    this.pre = make("pre", { class: "log", tabindex: "0", "aria-label": `${stream} of ${attempt}` });
    this.said = make("p", { class: "quiet" });
    this.element = make("div", {}, this.pre, this.said);
    this.element.keep = true;
  }

  /** Reads the next piece, if there is one. Whoever has scrolled to the end goes on seeing the end. */
  async readOn() {
    const isAtEnd = this.pre.scrollTop + this.pre.clientHeight >= this.pre.scrollHeight - 4;
    try {
      const piece = await text(`attempts/${this.#attempt}/log/${this.#stream}?offset=${this.#next}`);
      if (piece.text) this.pre.append(piece.text);
      this.said.textContent = piece.next === 0 ? "Nothing was written." : `${bytes(piece.next)} up to here`;
      this.#next = piece.next;
    } catch (error) {
      this.said.textContent = error.message;
    }
    if (isAtEnd) this.pre.scrollTop = this.pre.scrollHeight;
  }
}

/** A button that shows a log. */
export function logButton(attempt, stream) {
  return make("button", { type: "button", class: "plain", click: () => openLog(attempt, stream) }, stream);
}

function openLog(attempt, stream) {
  const log = new Log(attempt, stream);
  const close = () => {
    dialog.close();
    dialog.remove();
  };
  const dialog = make("dialog", { "aria-label": `${stream} of ${attempt}`, cancel: close },
    make("h2", {}, `${attempt} ${stream}`), log.element,
    make("div", { class: "bar" },
      make("button", { type: "button", click: () => log.readOn() }, "Read on"),
      make("button", { type: "button", click: close }, "Close")));
  document.body.append(dialog);
  dialog.showModal();
  log.readOn();
}
