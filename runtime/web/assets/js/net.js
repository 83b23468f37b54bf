// Asks the server: reads by the cookie, orders by the token of this tab.
// Owns that nothing is fetched again which has not changed, and what is said when nobody answers. Does not own pages.

import { heard } from "./clock.js";

export const BASE = "/api/nap/v1/";
const TOKEN = "nap-token";
const KEPT_MAX = 64;
const kept = new Map();

/** The recording that the address names, where a server shows several. */
export function recording() {
  return new URLSearchParams(location.search).get("recording");
}

/** The same address, or the same question, about the recording that is shown. What is about all of them stays as it is. */
export function ofRecording(path) {
  const name = recording();
  if (!name || path.startsWith("/recordings") || /[?&]recording=/.test(path)) return path;
  return `${path}${path.includes("?") ? "&" : "?"}recording=${encodeURIComponent(name)}`;
}

/** Why there is no answer, in the server's words. */
export class Problem extends Error {
  constructor(status, detail, remedy) {
    super(detail);
    this.status = status;
    this.remedy = remedy;
  }
}

async function problem(response) {
  const said = await response.json().catch(() => ({ detail: response.statusText, remedy: null }));
  return new Problem(response.status, said.detail, said.remedy);
}

async function send(path, options) {
  let response;
  try {
    response = await fetch(BASE + path, { ...options, signal: AbortSignal.timeout(15_000) });
  } catch {
    throw new Problem(0, "the server of this page does not answer", "it is asked again by itself");
  }
  heard(response.headers.get("date"));
  return response;
}

const JSON_FORM = { accept: "application/json", read: (response) => response.json() };

/**
 * An object; the one that is known already if it has not changed. What is large and seldom asked for twice need not be kept. `form`
 * is what is accepted, and how it is read.
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

/** Text, and where the next piece begins. */
export async function text(path) {
  const response = await send(ofRecording(path), {});
  if (!response.ok) throw await problem(response);
  return { text: await response.text(), next: Number(response.headers.get("x-nap-log-next")) };
}

/** Orders something. */
export async function order(path, body) {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${sessionStorage.getItem(TOKEN)}` };
  const response = await send(path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw await problem(response);
  return response.json();
}

/** Whether this tab may order. */
export function mayOrder() {
  return sessionStorage.getItem(TOKEN) !== null;
}

/** Signs in by the code in the address, which is taken out of it at once. Whether there was one. */
export async function signIn() {
  const found = /^#code=(.+)$/.exec(location.hash);
  if (!found) return false;
  history.replaceState(null, "", location.pathname + location.search);
  const headers = { "Content-Type": "application/json" };
  const response = await send("sign-in", { method: "POST", headers, body: JSON.stringify({ code: found[1] }) });
  if (!response.ok) throw await problem(response);
  const { token } = await response.json();
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
  return true;
}

/** Forgets who is signed in. */
export async function signOut() {
  sessionStorage.removeItem(TOKEN);
  await send("sign-out", { method: "POST" });
}
