// What was submitted: the command line, inputs, program, files, settings, scheduler, and the earlier jobs of the same name.

import { link, make, renew, state, table } from "../elements.js";
import { bytes, count, moment, span, taken, utc } from "../format.js";
import { get } from "../net.js";

const yes = (is) => (is ? "yes" : "no");
const code = (text) => make("code", {}, text);
const UNKNOWN = "not recorded";
const COMMAND = "Command line";

/** Labels of the settings, their fields, and formatters. */
const SETTINGS = [
  ["Job of the program", "definition", String],
  ["Reduce tasks", "reduces", count],
  ["Attempts per task", "attempts_max", count],
  ["Memory per attempt", "task_memory_bytes", bytes],
  ["Slow-start of reduces", "slowstart_permille", (permille) => `${permille / 10} %`],
  ["Timeout without progress", "task_timeout_millis", (millis) => (millis === 0 ? "never" : span(millis))],
  ["Deadline", "deadline_millis", (millis) => (millis === null ? "none" : span(millis))],
  ["Map checkpoints", "checkpoint_maps", yes],
  ["Reduce checkpoints", "checkpoint_reduces", yes],
  ["Compressed map output", "compress", yes],
  ["Overwrites its output", "overwrite", yes],
  ["Syncs to disk", "durable", yes],
];

/** A command line to read; what can be pasted is `command.shell`. */
function readable({ arguments: all, arguments_left_out: rest }) {
  const words = all.map((word) => (/^[^\s"]+$/.test(word) ? word : JSON.stringify(word)));
  return `${words.join(" ")}${rest ? ` and ${count(rest)} more arguments` : ""}`;
}

/** The values of tables as lines of a configuration file, `a.b = 1`; a value that is not set has none. */
function dotted(value, path = []) {
  if (value === null) return [];
  if (typeof value !== "object" || Array.isArray(value)) return [`${path.join(".")} = ${JSON.stringify(value)}`];
  return Object.entries(value).flatMap(([name, inner]) => dotted(inner, [...path, name]));
}

/** The rows [label, text] of a submission; a text of null is not shown. */
function rowsOf({ command, program, files, settings, scheduler, ...job }) {
  const of = (known, value) => (known ? value(known) : UNKNOWN);
  return [
    ["Rerun of", job.rerun_of],
    [COMMAND, of(command, readable)],
    ["Working directory", of(command, ({ directory }) => directory)],
    ["Inputs", of(command, ({ inputs, inputs_total: all }) => `${inputs.join(", ")}${all > inputs.length ? ` and ${count(all - inputs.length)} more` : ""}`)],
    ["Size of the inputs", job.splits === null ? UNKNOWN : `${bytes(job.input_bytes)} in ${count(job.splits)} map tasks`],
    ["Split size", of(command, ({ split_size_bytes: size }) => bytes(size))],
    ["Settings by --conf", of(command, ({ confs }) => confs.join(", ") || "none")],
    ["Program", program ? `SHA-256 ${program.sha256}, ${bytes(program.bytes)}` : UNKNOWN],
    ["Side files", job.splits === null ? UNKNOWN : files.map((file) => `${file.name} (SHA-256 ${file.sha256}, ${bytes(file.bytes)})`).join(", ") || "none"],
    ["Output", job.output],
    ["Queue, priority now", `${job.queue}, ${job.priority}`],
    ["User", job.user],
    ["Scheduler at its end", scheduler ? [scheduler.name, ...dotted(JSON.parse(scheduler.tables))].join("\n") : null],
    ...SETTINGS.map(([words, name, form]) => [words, of(settings, (known) => form(known[name]))]),
  ];
}

export function submitted({ id, place }) {
  const again = make("div");
  const rows = make("div");
  const earlier = make("section", { "aria-label": "Earlier runs" });
  place.append(again, rows, earlier);
  return {
    async refresh() {
      const asked = await get(`jobs/${id}/submitted`);
      // The queues name the scheduler of a running cluster; a history has none.
      const now = asked.scheduler ? null : await get("queues").then(({ scheduler }) => scheduler, () => UNKNOWN);
      renew(again, copying(asked));
      // With a box of its own above, the command line needs no row.
      const isShown = ([words, value]) => value !== null && !(words === COMMAND && asked.command?.shell);
      renew(rows, table("What was submitted", [["What", ([words]) => words, "id"], ["Submitted", ([, value]) => code(value), "text"]],
        [...rowsOf(asked).filter(isShown), ...(now ? [["Scheduler now", now]] : [])], ""));
      renew(earlier, make("h2", {}, "Earlier jobs of this name"), runs(asked));
    },
  };
}

function copying({ command, rerun_of: first }) {
  if (!command?.shell) return make("p", { class: "quiet" }, command ? "The command line is too long to be recorded as a whole." : "The command line is not recorded.");
  const copy = ({ target }) => navigator.clipboard.writeText(command.shell).then(() => { target.textContent = "Copied"; });
  return [
    make("div", { class: "bar" }, make("button", { type: "button", click: copy }, "Copy as a command"),
      command.lacks_secrets && make("span", { class: "quiet" }, "Secrets are not recorded; put them in place of ***."),
      first && make("span", { class: "quiet" }, "This is the command of the first run; a rerun can have another output.")),
    make("pre", { class: "log", tabindex: "0", "aria-label": "The command" }, command.shell),
  ];
}

function runs({ job, earlier, earlier_total: total }) {
  return [
    table("Earlier jobs of this name", [
      ["Job", (run) => link(`/jobs/${run.job}`, run.job), "id"],
      ["State", (run) => state(run.state)],
      ["Submitted", (run) => make("time", { title: utc(run.submitted_millis) }, moment(run.submitted_millis))],
      ["Took", (run) => taken(run.submitted_millis, run.ended_millis), "number"],
      ["Comparison", (run) => link(`/compare?left=${run.job}&right=${job}`, "Compare")],
    ], earlier, "No earlier job has this name."),
    total > earlier.length && make("p", { class: "under" }, `the newest ${earlier.length} of ${count(total)}`),
  ];
}
