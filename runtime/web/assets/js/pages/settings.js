// The settings of a job.

import { make, renew, table } from "../elements.js";
import { bytes, count, span } from "../format.js";

const yes = (is) => (is ? "yes" : "no");

/** Labels of the settings, their fields, and formatters. */
const SETTINGS = [
  ["Job of the program", "definition", (name) => make("code", {}, name)],
  ["Reduce tasks", "reduces", count],
  ["Failures of a task until the job fails", "attempts_max", count],
  ["Memory of an attempt", "task_memory_bytes", bytes],
  ["Reduces start when so much of the maps is done", "slowstart_permille", (permille) => `${permille / 10} %`],
  ["An attempt without progress is ended after", "task_timeout_millis", (millis) => (millis === 0 ? "never" : span(millis))],
  ["To be done within", "deadline_millis", (millis) => (millis === null ? "no deadline" : span(millis))],
  ["Maps can be checkpointed", "checkpoint_maps", yes],
  ["Reduces can be checkpointed", "checkpoint_reduces", yes],
  ["Outputs of maps are compressed", "compress", yes],
  ["An output that was there is replaced", "overwrite", yes],
  ["What is saved is on the disk before it counts", "durable", yes],
];

export function settings({ place }) {
  return {
    refresh(job) {
      const rows = job.settings ? SETTINGS : [];
      renew(place, table([["Setting", ([words]) => words, "text"], ["Value", ([, name, form]) => form(job.settings[name])]], rows,
        "This job was recorded by an earlier version, without its settings."));
    },
  };
}
