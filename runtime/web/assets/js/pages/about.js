// About this page: session and keys.

import { facts, make, renew } from "../elements.js";
import { moment } from "../format.js";
import { get, mayOrder, signOut } from "../net.js";

const KEYS = [
  ["g then c, j, p, q, w, r", "to the cluster, the jobs, the preemptions, the queues, the workers, the recordings"],
  ["/", "search a job, task, attempt, worker, user or queue"],
  ["f", "to the filter of a list; Escape leaves it"],
  ["h l, j k", "in the timeline of the page: earlier and later, row by row"],
  ["n p", "to the next and the previous nap"],
  ["+ - 0", "closer, farther, all of it"],
  ["arrows", "move, while the timeline has the focus"],
  ["t", "the timeline as a table"],
  ["?", "this page"],
];

export function view({ main }) {
  const place = make("div");
  main.append(make("h1", {}, "About"), place);
  return {
    title: "About",
    isLive: false,
    async refresh() {
      const session = await get("session");
      renew(place,
        facts([
          ["Cluster", session.cluster],
          ["Version", session.version],
          ["Access", mayOrder() ? "read and order" : "read only"],
          ["Signed in until", moment(session.until_millis)],
        ]),
        make("div", { class: "bar" },
          make("button", { type: "button", click: () => signOut().then(() => location.reload()) }, "Sign out"),
          make("a", { href: "/api/openapi.json" }, "REST, described"),
          make("a", { href: "/metrics" }, "Metrics")),
        make("h2", {}, "Keys"),
        facts(KEYS.map(([key, what]) => [make("code", {}, key), what])));
    },
  };
}
