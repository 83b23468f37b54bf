// Requests to the server: reads use the cookie, orders the token of this tab. Responses are cached by their ETag.
//
// A browser gives a tab that a link opens no copy of the storage of its tab. Such a tab asks the other tabs of this origin for the
// token, through a channel that nothing else hears and that stores nothing.

import { now, setClock } from "./clock.js";

export const BASE = "/api/nap/v1/";
const TOKEN = "nap-token";
/** Marks a tab that was signed in to view; it does not ask for a token. */
const VIEWS = "nap-views";
const CHANNEL = "nap-token";
const WANTED = "nap-wanted";
const WANTED_MILLIS = 15 * 60_000;
const KEPT_MAX = 64;
const kept = new Map();

/** The recording in the address, if the server shows several. */
export function recording() {
  return new URLSearchParams(location.search).get("recording");
}

/** Adds the current recording to an address or a request. Addresses of the list of recordings stay as they are. */
export function ofRecording(path) {
  const name = recording();
  if (!name || path.startsWith("/recordings") || /[?&]recording=/.test(path)) return path;
  return `${path}${path.includes("?") ? "&" : "?"}recording=${encodeURIComponent(name)}`;
}

/** A failed request, with the message of the server. */
export class Problem extends Error {
  constructor(status, detail, remedy) {
    super(detail);
    this.status = status;
    this.remedy = remedy;
  }
}

async function problem(response) {
  const body = await response.json().catch(() => ({ detail: response.statusText, remedy: null }));
  return new Problem(response.status, body.detail, body.remedy);
}

async function send(path, options) {
  let response;
  try {
    response = await fetch(BASE + path, { ...options, signal: AbortSignal.timeout(15_000) });
  } catch {
    throw new Problem(0, "the server of this page does not answer", "the page keeps trying");
  }
  setClock(response.headers.get("date"));
  return response;
}

const JSON_FORM = { accept: "application/json", read: (response) => response.json() };

/**
 * Requests an object; returns the cached one if it has not changed. Large objects that are rarely requested twice need not be cached
 * (`isKept`). `form` is the accepted content type and its reader.
 */
export async function get(question, { isKept = true, form = JSON_FORM } = {}) {
  const path = ofRecording(question);
  const known = kept.get(path);
  const response = await send(path, { headers: { Accept: form.accept, ...(known ? { "If-None-Match": known.tag } : {}) } });
  if (response.status === 304 && known) return known.value;
  if (!response.ok) throw await problem(response);
  const value = await form.read(response);
  const tag = response.headers.get("etag");
  kept.delete(path);
  if (tag && isKept) kept.set(path, { tag, value });
  if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value);
  return value;
}

/** Requests text; `next` is the offset of the next piece. */
export async function text(path) {
  const response = await send(ofRecording(path), {});
  if (!response.ok) throw await problem(response);
  return { text: await response.text(), next: Number(response.headers.get("x-nap-log-next")) };
}

const asOperator = () => ({ Authorization: `Bearer ${sessionStorage.getItem(TOKEN)}` });

/** Requests an object that only operators may read. */
export async function getAsOperator(path) {
  const response = await send(path, { headers: asOperator() });
  if (!response.ok) throw await problem(response);
  return response.json();
}

/** Sends an order. */
export async function order(path, body) {
  const headers = { "Content-Type": "application/json", ...asOperator() };
  const response = await send(path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw await problem(response);
  return response.json();
}

/** Whether this tab has a token for orders. */
export function mayOrder() {
  return sessionStorage.getItem(TOKEN) !== null;
}

let channel = null;

/**
 * Hands the token of this tab to others that ask for it, and asks for one if this tab `wants` one and has none. `changed` is called when this tab
 * got or lost its token.
 */
export function shareToken({ wants, changed }) {
  if (!("BroadcastChannel" in window)) return;
  const tab = Math.random().toString(36).slice(2);
  const mayAsk = () => wants && !mayOrder() && sessionStorage.getItem(VIEWS) === null;
  channel ??= new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data: { kind, from, to, token } }) => {
    if (kind === "ask" && mayOrder()) channel.postMessage({ kind: "token", to: from, token: sessionStorage.getItem(TOKEN) });
    else if (kind === "token" && to === tab && mayAsk()) {
      sessionStorage.setItem(TOKEN, token);
      changed();
    } else if (kind === "signed-out" && mayOrder()) {
      sessionStorage.removeItem(TOKEN);
      changed();
    }
  };
  if (mayAsk()) channel.postMessage({ kind: "ask", from: tab });
}

/** Signs in with the code in the address, which is removed at once, and goes to the page that needed it. */
export async function signInByAddress() {
  const code = codeIn(location.hash);
  if (!code) return;
  history.replaceState(null, "", location.pathname + location.search);
  await signIn(code);
  const wanted = takeWanted();
  if (wanted && location.pathname === "/" && !location.search) history.replaceState(null, "", wanted);
}

/** The code in a link, or null. */
export function codeIn(link) {
  return /#code=([\w.-]+)\s*$/.exec(link)?.[1] ?? null;
}

/** Remembers the address for the sign-in, which may happen in another tab. */
export function setWanted() {
  localStorage.setItem(WANTED, JSON.stringify({ address: location.pathname + location.search, at: now() }));
}

/** The remembered address, once, and only within the lifetime of a link. */
function takeWanted() {
  const { address, at } = JSON.parse(localStorage.getItem(WANTED) ?? "{}");
  localStorage.removeItem(WANTED);
  return now() - at < WANTED_MILLIS ? address : null;
}

/** Signs in with a code. */
export async function signIn(code) {
  const headers = { "Content-Type": "application/json" };
  const response = await send("sign-in", { method: "POST", headers, body: JSON.stringify({ code }) });
  if (!response.ok) throw await problem(response);
  const { token } = await response.json();
  if (token) {
    sessionStorage.setItem(TOKEN, token);
    sessionStorage.removeItem(VIEWS);
  } else {
    sessionStorage.removeItem(TOKEN);
    sessionStorage.setItem(VIEWS, "true");
  }
}

/** Drops the cookie, and the token of every tab. */
export async function signOut() {
  sessionStorage.removeItem(TOKEN);
  channel?.postMessage({ kind: "signed-out" });
  await send("sign-out", { method: "POST" });
}
