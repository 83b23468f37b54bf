// The search of a job, task, attempt, worker, user or queue from anywhere, in all recordings of the server.

import { href, make } from "./elements.js";
import { count } from "./format.js";
import { get } from "./net.js";

/** Waits until the typing has paused. */
const TYPING_MILLIS = 80;
const LIMIT = 10;
const PAGES = {
  job: href, task: href, worker: href,
  queue: (name) => `/queues/${encodeURIComponent(name)}`,
  user: (name) => `/jobs?text=${encodeURIComponent(name)}`,
};

/** The page of an object, in its recording. */
function addressOf({ kind, name, recording }) {
  const path = PAGES[kind](name);
  return recording === null ? path : `${path}${path.includes("?") ? "&" : "?"}${new URLSearchParams({ recording })}`;
}

/** Opens the dialog; `go` goes to an address. */
export function openSearch(go) {
  if (document.querySelector("dialog.search")) return;
  let items = [];
  let selected = 0;
  let asked = "";
  let answered = null;
  let timer = 0;
  const input = make("input", { type: "text", role: "combobox", "aria-label": "Search", "aria-expanded": "false", "aria-controls": "found",
    "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", placeholder: "A job, task, attempt, worker, user or queue" });
  const found = make("ul", { id: "found", role: "listbox", "aria-label": "Found" });
  const words = make("p", { class: "quiet", role: "status" });
  const dialog = make("dialog", { class: "search", "aria-label": "Search", close: () => dialog.remove() }, input, found, words);
  const open = (item) => {
    dialog.close();
    return go(addressOf(item));
  };
  const mark = () => {
    [...found.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === selected)));
    if (items.length) input.setAttribute("aria-activedescendant", `found-${selected}`);
    else input.removeAttribute("aria-activedescendant");
  };
  /** Asks for what is typed, if that is new, and waits for the answer. */
  const ask = () => {
    clearTimeout(timer);
    const text = input.value.trim();
    if (text !== asked) {
      asked = text;
      answered = show(text);
    }
    return answered;
  };
  /** Shows what is found, unless a later request has overtaken this one. */
  const show = async (text) => {
    const answer = text ? await get(`search?${new URLSearchParams({ text, limit: LIMIT })}`, { isKept: false }) : { items: [], total: 0 };
    if (asked !== text) return;
    items = answer.items;
    selected = 0;
    found.replaceChildren(...items.map((item, at) => make("li", { id: `found-${at}`, role: "option", click: () => open(item) },
      make("span", { class: "quiet" }, `${item.kind} `), item.name, make("span", { class: "quiet" }, ` ${item.about}${item.recording === null ? "" : `, in ${item.recording}`}`))));
    input.setAttribute("aria-expanded", String(items.length > 0));
    const number = !text ? "" : answer.total === 0 ? "Nothing found." : answer.total > items.length ? `${items.length} of ${count(answer.total)}` : "";
    words.textContent = [number, ...(answer.remarks ?? []).map((remark) => `Left out: ${remark}`)].filter(Boolean).join("; ");
    mark();
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, TYPING_MILLIS);
  });
  input.addEventListener("keydown", async (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && items.length) {
      event.preventDefault();
      selected = (selected + by + items.length) % items.length;
      mark();
    } else if (event.key === "Enter") {
      event.preventDefault();
      await ask();
      if (items[selected]) open(items[selected]);
    }
  });
  document.body.append(dialog);
  dialog.showModal();
}
