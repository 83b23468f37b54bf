// The workers, and draining them.
// Owns the list. Does not own their lanes (the first page).

import { make, renew, state, table } from "../elements.js";
import { moment, span } from "../format.js";
import { get, mayOrder } from "../net.js";
import { orderButton } from "../orders.js";

export function view({ main, again }) {
  const list = make("div");
  main.append(make("h1", {}, "Workers"), list);
  return {
    title: "Workers",
    async refresh() {
      const [page, session] = [await get("workers?limit=10000"), await get("session")];
      const columns = [
        ["Worker", (worker) => worker.worker, "id"],
        ["Name", (worker) => worker.name, "text"],
        ["Host", (worker) => worker.host],
        ["Rack", (worker) => worker.rack],
        ["State", (worker) => state(worker.state)],
        ["Map slots", (worker) => `${worker.map.used}/${worker.map.slots}`, "number"],
        ["Reduce slots", (worker) => `${worker.reduce.used}/${worker.reduce.slots}`, "number"],
        ["Isolation", (worker) => worker.isolation],
        ["Heard of", (worker) => (worker.gone_millis === null ? `${span(worker.silent_millis)} ago` : `gone at ${moment(worker.gone_millis)}`)],
        ["Why", (worker) => worker.reason, "text"],
      ];
      if (mayOrder() && session.is_live) columns.push(["", (worker) => (worker.state.startsWith("up") ? drain(worker, again) : ""), "id"]);
      renew(list, table(columns, page.items, session.is_live ? "No worker has joined. Start one with: nap worker" : "A history knows no workers."));
    },
  };
}

function drain(worker, again) {
  return orderButton({
    label: "Drain",
    title: `Drain ${worker.worker}?`,
    about: "It gets nothing more to do, and leaves when nothing of it is needed.",
    path: `workers/${worker.worker}/drain`,
    body: () => ({ hand_back: false }),
    done: again,
  });
}
