//! Counters, in Hadoop's groups.
//!
//! Owns which group a counter is of. All are kept of jobs, and some of attempts that did their tasks.

use std::collections::BTreeMap;

use napreduce_engine::{TaskId, TaskKind};
use napreduce_protocol::{AttemptSummary, Counter, JobDetail};
use schemars::JsonSchema;
use serde::Serialize;

use crate::foreign::{attempt_id, job_id, task_id};

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
    (group_of(built_in).to_owned(), full.to_owned())
}

fn group_of(counter: Counter) -> &'static str {
    match counter {
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
    }
}

answer! {
    /// `jobTaskCounters`
    #[serde(rename_all = "camelCase")]
    pub struct TaskCounters {
        pub id: String = task_id(task),
        pub task_counter_group: Vec<TaskCounterGroup> = groups_of(done),
    }

    /// `done` is the attempt that did it.
    pub fn of(task: TaskId, done: Option<&AttemptSummary>);
}

answer! {
    /// `jobTaskAttemptCounters`
    #[serde(rename_all = "camelCase")]
    pub struct AttemptCounters {
        pub id: String = attempt_id(attempt.attempt),
        pub task_attempt_counter_group: Vec<TaskCounterGroup> = groups_of(Some(attempt)),
    }

    pub fn of(attempt: &AttemptSummary);
}

/// `counterGroup` of a task or an attempt
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskCounterGroup {
    pub counter_group_name: &'static str,
    pub counter: Vec<TaskCounter>,
}

/// `counter` of a task or an attempt
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskCounter {
    pub name: &'static str,
    pub value: u64,
}

/// What is known of an attempt that did its task; nothing of others.
fn groups_of(attempt: Option<&AttemptSummary>) -> Vec<TaskCounterGroup> {
    let Some((attempt, figures)) = attempt.and_then(|attempt| Some((attempt, attempt.figures?))) else {
        return Vec::new();
    };
    let of_kind = match attempt.attempt.task.kind {
        TaskKind::Map => [
            (Counter::InputBytes, figures.input_bytes),
            (Counter::MapInputRecords, figures.input_records),
            (Counter::MapOutputRecords, figures.output_records),
            (Counter::MapOutputMaterializedBytes, figures.output_bytes),
        ],
        TaskKind::Reduce => [
            (Counter::ReduceShuffleBytes, figures.input_bytes),
            (Counter::ReduceInputRecords, figures.input_records),
            (Counter::ReduceOutputRecords, figures.output_records),
            (Counter::OutputBytes, figures.output_bytes),
        ],
    };
    let of_all =
        [(Counter::SpilledRecords, figures.spilled_records), (Counter::CpuMillis, figures.processor_millis)];
    let mut groups: BTreeMap<&'static str, Vec<TaskCounter>> = BTreeMap::new();
    for (counter, value) in of_kind.into_iter().chain(of_all) {
        let named = TaskCounter { name: counter.in_words(), value };
        groups.entry(group_of(counter)).or_default().push(named);
    }
    groups
        .into_iter()
        .map(|(counter_group_name, counter)| TaskCounterGroup { counter_group_name, counter })
        .collect()
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::AttemptFigures;

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

    #[test]
    fn an_attempt_that_did_its_task_has_counters_and_others_have_none() {
        let mut attempt = detail().attempts.remove(0);
        assert!(AttemptCounters::of(&attempt).task_attempt_counter_group.is_empty());
        let figures = AttemptFigures { input_records: 12, processor_millis: 40, ..AttemptFigures::default() };
        attempt.figures = Some(figures);
        let told =
            serde_json::to_value(TaskCounters::of(attempt.attempt.task, Some(&attempt))).expect("JSON");
        let group = &told["taskCounterGroup"][0];
        assert_eq!(group["counterGroupName"], OWN_GROUP);
        assert_eq!(group["counter"][0]["name"], "BYTES_READ");
        let of_tasks = told["taskCounterGroup"][1]["counter"].to_string();
        for told in
            [r#"{"name":"MAP_INPUT_RECORDS","value":12}"#, r#"{"name":"CPU_MILLISECONDS","value":40}"#]
        {
            assert!(of_tasks.contains(told), "{of_tasks}");
        }
    }
}
