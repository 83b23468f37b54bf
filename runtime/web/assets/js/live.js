// Receives events from the server: one stream for all tabs of a browser, since the number of streams is limited. The tab that holds
// a lock opens the stream and forwards events to the others; when it closes, the browser grants the lock to the next tab.

import { BASE, get } from "./net.js";

const NAME = "nap-events";
const HIDDEN_MILLIS = 60_000;
/** Each tab repeats its topics at this interval. Browsers slow down timers of hidden tabs, so a tab is dropped much later. */
const WANT_MILLIS = 20_000;
const FORGOTTEN_MILLIS = 70_000;
const RETRY_MILLIS = 10_000;
const GATHER_MILLIS = 50;
const TOPICS_MAX = 64;
const EVENTS = ["cluster", "job", "ended", "worker", "attempt", "preemption", "shares", "reset"];

/** Whether an event is about one of these topics. */
function concerns(topics, { name, job }) {
  if (name === "reset") return true;
  if (name === "cluster") return topics.includes("cluster");
  if (name === "worker") return topics.includes("workers");
  if (name === "shares") return topics.includes("shares");
  const all = { job: "jobs", ended: "jobs", preemption: "preemptions" }[name];
  return topics.includes(all) || topics.includes(`job:${job}`);
}

/** The events for this tab. `changed` is called when something that the tab shows has changed, and when events start or stop. */
export class Live {
  #changed;
  #tab = Math.random().toString(36).slice(2);
  #channel = null;
  #topics = [];
  /** The topics of the open stream; null if there is none. */
  #covered = null;
  #heard = 0;
  #last = null;
  #isAway = false;
  #isStarted = false;
  #joined = null;
  #stream = null;
  #hiding = 0;

  constructor(changed) {
    this.#changed = changed;
    document.addEventListener("visibilitychange", () => this.#look());
    addEventListener("pagehide", () => this.#leave());
    addEventListener("pageshow", (event) => event.persisted && this.#look());
    this.#look();
  }

  /** Starts once, if the server has a stream and the browser supports sharing it. */
  async start() {
    if (this.#isStarted) return;
    const { capabilities } = await get("session");
    if (this.#isStarted) return;
    this.#isStarted = true;
    if (!capabilities.includes("stream") || !navigator.locks || !("BroadcastChannel" in window)) return;
    this.#channel = new BroadcastChannel(NAME);
    this.#channel.onmessage = ({ data }) => this.#hear(data);
    setInterval(() => this.#joined && this.#want(), WANT_MILLIS);
    if (!this.#isAway) this.#join();
  }

  /** A hidden tab keeps receiving events for a minute. */
  #look() {
    clearTimeout(this.#hiding);
    if (document.hidden) {
      this.#hiding = setTimeout(() => this.#leave(), HIDDEN_MILLIS);
      return;
    }
    const wasAway = this.#isAway;
    this.#isAway = false;
    if (this.#channel && !this.#joined) this.#join();
    if (wasAway) this.#changed();
  }

  /** Sets the topics of the view that is shown. */
  follow(topics) {
    this.#topics = topics;
    if (this.#joined) this.#want();
  }

  /** Whether events cover everything that this tab shows. */
  get isLive() {
    return this.#isCovered() && performance.now() - this.#heard < FORGOTTEN_MILLIS;
  }

  /** Whether this tab has been hidden for a minute; it sends no requests then. */
  get isAway() {
    return this.#isAway;
  }

  #isCovered() {
    return this.#covered !== null && this.#topics.every((topic) => this.#covered.includes(topic));
  }

  #join() {
    this.#joined = new AbortController();
    const { signal } = this.#joined;
    const lead = () => new Promise((end) => {
      if (signal.aborted) return end();
      this.#stream = new Stream({ tell: (message) => this.#tell(message), last: () => this.#last });
      signal.addEventListener("abort", () => {
        this.#stream.close();
        this.#stream = null;
        end();
      });
      this.#stream.want(this.#tab, this.#topics);
      this.#tell({ kind: "who" });
    });
    navigator.locks.request(NAME, { signal }, lead).catch((error) => {
      if (error.name !== "AbortError") throw error;
    });
    this.#want();
  }

  #leave() {
    this.#isAway = true;
    this.#covered = null;
    if (!this.#joined) return;
    this.#joined.abort();
    this.#joined = null;
    this.#channel.postMessage({ kind: "gone", tab: this.#tab });
  }

  #want() {
    this.#stream?.want(this.#tab, this.#topics);
    this.#channel.postMessage({ kind: "want", tab: this.#tab, topics: this.#topics });
  }

  /** Sends a message to all tabs, including this one. */
  #tell(message) {
    this.#channel.postMessage(message);
    this.#hear(message);
  }

  #hear(message) {
    if (!this.#joined) return;
    this.#heard = performance.now();
    if (message.kind === "want") this.#stream?.want(message.tab, message.topics);
    else if (message.kind === "gone") this.#stream?.forget(message.tab);
    else if (message.kind === "who") this.#want();
    else if (message.kind === "open") this.#open(message);
    else if (message.kind === "closed") this.#close();
    else if (message.kind === "event") {
      this.#last = message.id || this.#last;
      if (concerns(this.#topics, message)) this.#changed();
    }
  }

  /** Catches up once, because events from before are missing; with `isNew` every tab may have missed some. */
  #open({ topics, isNew }) {
    const was = this.#isCovered();
    this.#covered = topics;
    if (this.#isCovered() && (isNew || !was)) this.#changed();
  }

  #close() {
    const was = this.#covered;
    this.#covered = null;
    if (was !== null) this.#changed();
  }
}

/** The event stream, in the tab that holds the lock, for the topics of all tabs. */
class Stream {
  #tell;
  #last;
  #wants = new Map();
  #topics = [];
  #source = null;
  #timer = 0;
  #pruning;
  #isClosed = false;

  constructor({ tell, last }) {
    this.#tell = tell;
    this.#last = last;
    this.#pruning = setInterval(() => this.#plan(), WANT_MILLIS);
  }

  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#pruning);
    this.#source?.close();
    this.#source = null;
  }

  want(tab, topics) {
    this.#wants.set(tab, { topics, at: performance.now() });
    this.#plan();
  }

  forget(tab) {
    this.#wants.delete(tab);
  }

  /** Gathers requests for topics that several tabs send at once. */
  #plan() {
    if (this.#timer === 0 && !this.#isClosed) this.#timer = setTimeout(() => this.#renew(), GATHER_MILLIS);
  }

  #renew() {
    this.#timer = 0;
    for (const [tab, { at }] of this.#wants) if (performance.now() - at > FORGOTTEN_MILLIS) this.#wants.delete(tab);
    const wanted = [...new Set([...this.#wants.values()].flatMap(({ topics }) => topics))].sort().slice(0, TOPICS_MAX);
    const isSame = wanted.join() === this.#topics.join();
    if (this.#source && isSame) {
      if (this.#source.readyState === EventSource.OPEN) this.#tell({ kind: "open", topics: this.#topics, isNew: false });
      return;
    }
    this.#source?.close();
    this.#source = null;
    this.#topics = wanted;
    if (wanted.length > 0) this.#listen();
    else this.#tell({ kind: "closed" });
  }

  #listen() {
    const last = this.#last();
    const asked = new URLSearchParams({ topics: this.#topics.join() });
    if (last) asked.set("after", last);
    const source = new EventSource(`${BASE}stream?${asked}`);
    let isNew = !last;
    source.onopen = () => {
      this.#tell({ kind: "open", topics: this.#topics, isNew });
      isNew = false;
    };
    source.onerror = () => {
      this.#tell({ kind: "closed" });
      // The request was refused, so the browser does not reconnect by itself.
      if (source.readyState === EventSource.CLOSED && this.#source === source) {
        this.#source = null;
        setTimeout(() => this.#plan(), RETRY_MILLIS);
      }
    };
    for (const name of EVENTS) {
      source.addEventListener(name, ({ data, lastEventId: id }) => {
        const object = JSON.parse(data);
        const job = object.job ?? /^job_\d+/.exec(object.attempt ?? "")?.[0] ?? null;
        this.#tell({ kind: "event", name, job, id });
      });
    }
    this.#source = source;
  }
}
