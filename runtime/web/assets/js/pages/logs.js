// Logs of attempts, loaded in pieces and shown as plain text.

import { make } from "../elements.js";
import { bytes } from "../format.js";
import { text } from "../net.js";

/** A log, loaded up to an offset. */
export class Log {
  #attempt;
  #stream;
  #next = 0;

  constructor(attempt, stream) {
    this.#attempt = attempt;
    this.#stream = stream;
    this.pre = make("pre", { class: "log", tabindex: "0", "aria-label": `${stream} of ${attempt}` });
    this.status = make("p", { class: "quiet" });
    this.element = make("div", {}, this.pre, this.status);
    this.element.keep = true;
  }

  /** Loads the next piece. A log that is scrolled to its end stays at its end. */
  async readOn() {
    const isAtEnd = this.pre.scrollTop + this.pre.clientHeight >= this.pre.scrollHeight - 4;
    try {
      const piece = await text(`attempts/${this.#attempt}/log/${this.#stream}?offset=${this.#next}`);
      if (piece.text) this.pre.append(piece.text);
      this.pre.hidden = piece.next === 0;
      this.status.textContent = piece.next === 0 ? "The log is empty." : `${bytes(piece.next)} up to here`;
      this.#next = piece.next;
    } catch (error) {
      this.status.textContent = error.message;
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
