//! Counters, in Hadoop's groups.
//!
//! Owns which group a counter is of. Counters are kept of jobs, so those of tasks and attempts are none.

use std::collections::BTreeMap;

use napreduce_core::{AttemptId, TaskId};
use napreduce_protocol::{Counter, JobDetail};
use schemars::JsonSchema;
use serde::Serialize;

use super::ids::{attempt_id, job_id, task_id};

const JOB_GROUP: &str = "org.apache.hadoop.mapreduce.JobCounter";
const TASK_GROUP: &str = "org.apache.hadoop.mapreduce.TaskCounter";
const FILE_GROUP: &str = "org.apache.hadoop.mapreduce.FileSystemCounter";
/// Those that Hadoop does not have.
const OWN_GROUP: &str = "napreduce";
/// Those of programs that name no group.
const PROGRAM_GROUP: &str = "program";

answer! {
    /// `jobCounters`
    #[serde(rename_all = "camelCase")]
    pub struct JobCounters {
        pub id: String = job_id(job.summary.job),
        pub counter_group: Vec<CounterGroup> = groups.into_iter().map(named).collect(),
    }

    pub fn of(job: &JobDetail) {
        let mut groups: BTreeMap<String, Vec<CounterTotal>> = BTreeMap::new();
        for (full, value) in job.counters.iter() {
            let (group, name) = group(full);
            let of_maps = full.starts_with("MAP_");
            let of_reduces = full.starts_with("REDUCE_") || full.starts_with("SHUFFLE");
            groups.entry(group).or_default().push(CounterTotal {
                name,
                map_counter_value: if of_maps { value } else { 0 },
                reduce_counter_value: if of_reduces { value } else { 0 },
                total_counter_value: value,
            });
        }
        let named = |(counter_group_name, counter)| CounterGroup { counter_group_name, counter };
    }
}

/// `counterGroup`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CounterGroup {
    pub counter_group_name: String,
    pub counter: Vec<CounterTotal>,
}

/// `counter`: a total; what maps and what reduces have of it is said of those that only one of them has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CounterTotal {
    pub name: String,
    pub map_counter_value: u64,
    pub reduce_counter_value: u64,
    pub total_counter_value: u64,
}

/// The group of a counter, and its name in it.
fn group(full: &str) -> (String, String) {
    let Some(built_in) = Counter::of_word(full) else {
        // So are those kept of which a command says `reporter:counter:GROUP,NAME,AMOUNT`.
        let (group, name) = full.split_once(": ").unwrap_or((PROGRAM_GROUP, full));
        return (group.to_owned(), name.to_owned());
    };
    let group = match built_in {
        Counter::LaunchedMaps
        | Counter::LaunchedReduces
        | Counter::FailedMaps
        | Counter::FailedReduces
        | Counter::KilledMaps
        | Counter::KilledReduces
        | Counter::MapMillis
        | Counter::ReduceMillis => JOB_GROUP,
        Counter::FileBytesRead | Counter::FileBytesWritten => FILE_GROUP,
        Counter::MapInputRecords
        | Counter::MapOutputRecords
        | Counter::MapOutputBytes
        | Counter::MapOutputMaterializedBytes
        | Counter::CombineInputRecords
        | Counter::CombineOutputRecords
        | Counter::SpilledRecords
        | Counter::ReduceShuffleBytes
        | Counter::ShuffledMaps
        | Counter::ReduceInputGroups
        | Counter::ReduceInputRecords
        | Counter::ReduceOutputRecords
        | Counter::CpuMillis => TASK_GROUP,
        _ => OWN_GROUP,
    };
    (group.to_owned(), full.to_owned())
}

answer! {
    /// `jobTaskCounters`
    #[serde(rename_all = "camelCase")]
    pub struct TaskCounters {
        pub id: String = task_id(task),
        pub task_counter_group: Vec<CounterGroup>,
    }

    pub fn of(task: TaskId);
}

answer! {
    /// `jobTaskAttemptCounters`
    #[serde(rename_all = "camelCase")]
    pub struct AttemptCounters {
        pub id: String = attempt_id(attempt),
        pub task_attempt_counter_group: Vec<CounterGroup>,
    }

    pub fn of(attempt: AttemptId);
}

#[cfg(test)]
mod tests {
    use super::super::super::answers::samples::detail;
    use super::*;

    #[test]
    fn counters_stand_in_hadoops_groups() {
        let mut job = detail();
        for (name, value) in [
            ("WORK_SAVED_MILLIS", 7),
            ("TOTAL_LAUNCHED_MAPS", 4),
            ("words: short", 2),
            ("FILE_BYTES_READ", 1),
        ] {
            job.counters.add(name, value);
        }
        let counters = JobCounters::of(&job);
        let mut found = Vec::new();
        for group in counters.counter_group {
            for counter in group.counter {
                let CounterTotal { name, map_counter_value, total_counter_value, .. } = counter;
                found.push((group.counter_group_name.clone(), name, map_counter_value, total_counter_value));
            }
        }
        let expected = [
            (OWN_GROUP, "WORK_SAVED_MILLIS", 0, 7),
            (FILE_GROUP, "FILE_BYTES_READ", 0, 1),
            (JOB_GROUP, "TOTAL_LAUNCHED_MAPS", 0, 4),
            (TASK_GROUP, "MAP_INPUT_RECORDS", 12, 12),
            (PROGRAM_GROUP, "bad rows", 0, 3),
            ("words", "short", 0, 2),
        ];
        let mut expected =
            expected.map(|(group, name, map, total)| (group.to_owned(), name.to_owned(), map, total));
        expected.sort();
        assert_eq!(found, expected);
    }
}
