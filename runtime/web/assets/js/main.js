// The entry point: selects the view for an address, and handles signing in and global keys.

import { make, sentence } from "./elements.js";
import { zone } from "./format.js";
import { Live } from "./live.js";
import { Problem, codeIn, get, ofRecording, recording, setWanted, shareToken, signIn, signInByAddress } from "./net.js";
import * as about from "./pages/about.js";
import * as cluster from "./pages/cluster.js";
import * as compare from "./pages/compare.js";
import * as comparison from "./pages/comparison.js";
import * as job from "./pages/job.js";
import * as jobs from "./pages/jobs.js";
import * as preemptions from "./pages/preemptions.js";
import * as queue from "./pages/queue.js";
import * as queues from "./pages/queues.js";
import * as recordings from "./pages/recordings.js";
import * as task from "./pages/task.js";
import * as worker from "./pages/worker.js";
import * as workers from "./pages/workers.js";
import { Rounds } from "./rounds.js";
import { openSearch } from "./search.js";
import { shareButton } from "./share.js";

/** Address patterns, views, and the topics of the events that concern them. */
const VIEWS = [
  [/^\/$/, cluster, () => ["cluster", "jobs"]],
  [/^\/jobs$/, jobs, () => ["jobs"]],
  [/^\/jobs\/(job_\d+)(?:\/([a-z]+))?$/, job, ([, id]) => [`job:${id}`]],
  [/^\/jobs\/(job_\d+)\/tasks\/(job_\d+_[mr]_\d+)$/, task, ([, id]) => [`job:${id}`]],
  [/^\/compare$/, compare, () => ["jobs"]],
  [/^\/preemptions$/, preemptions, () => ["preemptions"]],
  [/^\/queues$/, queues, () => ["cluster", "shares"]],
  [/^\/queues\/([^/]+)$/, queue, () => ["shares", "jobs", "preemptions"]],
  [/^\/workers$/, workers, () => ["workers"]],
  [/^\/workers\/(worker_\d+)$/, worker, () => ["workers", "jobs"]],
  [/^\/recordings$/, recordings, () => []],
  [/^\/recordings\/compare$/, comparison, () => []],
  [/^\/about$/, about, () => []],
];
/** Views of a single object, for the message when it does not exist. */
const NAMED = [[/^\/jobs\/\w+\/tasks\//, "task"], [/^\/jobs\/./, "job"], [/^\/workers\/./, "worker"], [/^\/queues\/./, "queue"]];
/** The name of sessions by a link of `nap web link`, which may have a token in another tab. */
const BROWSER = "browser";
const main = document.getElementById("main");
const notice = document.getElementById("notice");
document.getElementById("zone").textContent = zone();
let shown = null;
const live = new Live(() => shown?.rounds.changed());

/** Shows the view of the current address. */
async function show() {
  leave();
  const found = VIEWS.map(([pattern, page, topics]) => [pattern.exec(location.pathname), page, topics]).find(([parts]) => parts);
  for (const anchor of document.querySelectorAll("header nav a")) {
    const path = anchor.dataset.view;
    anchor.setAttribute("href", ofRecording(path));
    const isHere = path === "/" ? location.pathname === "/" : location.pathname.startsWith(path);
    if (isHere) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  main.replaceChildren();
  if (!found) return nothing("No such page", "Choose a page from the menu above.");
  delete main.dataset.ready;
  main.setAttribute("aria-busy", "true");
  const [parts, page, topics] = found;
  const current = {};
  current.rounds = new Rounds({ ask: () => ask(current), live });
  current.view = page.view({ main, parts, query: new URLSearchParams(location.search), go, again: () => current.rounds.now() });
  shown = current;
  entitle(current);
  // Subscribe before the first request, so that no change between the two is missed.
  live.follow(topics(parts));
  await current.rounds.now();
}

/** Names the tab; a view may know more of its object after a request. */
function entitle(current) {
  document.title = `${current.view.title} – napreduce`;
}

/** Shows a message in place of a view. */
function nothing(title, ...words) {
  document.title = "Not found – napreduce";
  leave();
  live.follow([]);
  main.replaceChildren(make("h1", {}, title), make("p", {}, words));
  ready();
}

function ready() {
  main.removeAttribute("aria-busy");
  main.dataset.ready = "true";
}

function leave() {
  shown?.rounds.stop();
  shown?.view.leave?.();
  shown = null;
}

/** Refreshes the view; returns how to go on: "live", "failed" or "over". */
async function ask(current) {
  let problem = null;
  try {
    await current.view.refresh();
    await live.start();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    problem = error;
  }
  if (shown !== current) return "over";
  if (problem?.status === 401) {
    signedOut(problem);
    return "over";
  }
  const kind = NAMED.find(([pattern]) => pattern.test(location.pathname))?.[1];
  if (problem?.status === 404 && kind && !current.isKnown) {
    say(null);
    nothing(`No such ${problem.message.includes("recording") ? "recording" : kind}`, sentence([problem.message, problem.remedy].filter(Boolean).join("; ")));
    return "over";
  }
  current.isKnown ||= problem === null;
  entitle(current);
  say(problem);
  ready();
  if (current.view.isLive === false) {
    live.follow([]);
    return "over";
  }
  return problem ? "failed" : "live";
}

function say(problem) {
  notice.hidden = problem === null;
  notice.textContent = problem === null ? "" : [problem.message, problem.remedy].filter(Boolean).join("; ");
}

function signedOut(problem) {
  document.title = "Sign in – napreduce";
  leave();
  live.follow([]);
  setWanted();
  const given = make("input", { type: "text", id: "link-given", autocomplete: "off", required: true, placeholder: "what nap web link prints" });
  const message = make("p", { role: "alert", class: "bad-words" });
  const submit = async (event) => {
    event.preventDefault();
    try {
      const code = codeIn(given.value);
      if (!code) throw new Problem(0, "this is not a link of nap web link", "it contains #code=");
      await signIn(code);
      await start();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      message.textContent = [error.message, error.remedy].filter(Boolean).join("; ");
    }
  };
  main.replaceChildren(
    make("div", { class: "panel center" },
      make("h1", {}, "Sign in by a link"),
      make("p", {}, problem.message),
      make("p", {}, "A link is good once, for 15 minutes. Get one where the cluster runs, and open it, or paste it here to stay on this page:"),
      make("pre", { class: "log" }, "nap web link"),
      make("form", { submit, class: "bar" }, make("label", { for: "link-given" }, "Link"), given, make("button", { type: "submit" }, "Sign in")),
      message,
      make("p", { class: "quiet" }, "nap up prints one, too. With --view the link gives read-only access."),
    ),
  );
  ready();
}

/** Navigates to an address of the page. */
function go(address) {
  history.pushState(null, "", address);
  return show();
}

document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[data-view]");
  if (!anchor || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(anchor.getAttribute("href")).then(() => main.focus({ preventScroll: true }));
});
addEventListener("popstate", show);

let awaiting = false;
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && main.contains(event.target) && /^(INPUT|TEXTAREA)$/.test(event.target.tagName)) {
    // Leaves the field, and keeps what is typed there.
    event.preventDefault();
    main.focus({ preventScroll: true });
  }
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const place = { c: "/", j: "/jobs", q: "/queues", w: "/workers", p: "/preemptions", r: "/recordings" }[event.key];
  // Only pages that the menu offers.
  if (awaiting && place && document.querySelector(`header nav a[data-view="${place}"]:not([hidden])`)) {
    event.preventDefault();
    go(ofRecording(place));
  } else if (event.key === "/") {
    event.preventDefault();
    openSearch(go);
  } else if (event.key === "f") {
    const search = main.querySelector("input[type=search]");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  } else if (event.key === "?") go(ofRecording("/about"));
  awaiting = event.key === "g";
});

document.getElementById("search").addEventListener("click", () => openSearch(go));
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
  shown?.view.repaint?.();
});

function showShareButton() {
  document.getElementById("share")?.remove();
  document.getElementById("theme").before(shareButton());
}

async function start() {
  const theme = localStorage.getItem("theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  try {
    await signInByAddress();
    const session = await get("session");
    document.getElementById("cluster-name").textContent = session.cluster;
    document.getElementById("cluster-name").title = session.cluster;
    document.getElementById("version").textContent = `napreduce ${session.version}. `;
    showShareButton();
    shareToken({ wants: session.name === BROWSER, changed: () => { showShareButton(); if (shown) show(); } });
    const isOneOfMany = session.capabilities.includes("recordings");
    document.querySelector('header nav a[data-view="/recordings"]').hidden = !isOneOfMany && !session.capabilities.includes("what-if");
    if (isOneOfMany && location.pathname === "/" && recording() === null) history.replaceState(null, "", "/recordings");
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status === 401 || error.status === 429) return signedOut(error);
  }
  await show();
}

start();
