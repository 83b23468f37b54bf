//! Short names for scenarios: `m0` is map 0 of job 1, `m0.1` is attempt 1 at that map, and `2:r0.1` is
//! attempt 1 at reduce 0 of job 2. Parses names and formats effects.

use crate::{
    AttemptId, Effect, JobId, JobOutcome, MapOutput, Order, Record, Span, Start, TaskId, TaskKind,
    WorkerId,
};

pub fn number(text: &str) -> u32 {
    text.parse()
        .unwrap_or_else(|_| panic!("'{text}' is not a number"))
}

pub fn worker(text: &str) -> WorkerId {
    WorkerId(number(text))
}

pub fn task(text: &str) -> TaskId {
    let (job, rest) = text.split_once(':').unwrap_or(("1", text));
    let (kind, index) = match rest.split_at_checked(1) {
        Some(("m", index)) => (TaskKind::Map, index),
        Some(("r", index)) => (TaskKind::Reduce, index),
        _ => panic!("'{text}' names no task"),
    };
    TaskId {
        job: JobId(number(job)),
        kind,
        index: number(index),
    }
}

pub fn attempt(text: &str) -> AttemptId {
    let (of, tried) = text
        .split_once('.')
        .unwrap_or_else(|| panic!("'{text}' names no attempt"));
    AttemptId {
        task: task(of),
        number: number(tried),
    }
}

pub fn name_task(id: TaskId) -> String {
    let letter = match id.kind {
        TaskKind::Map => 'm',
        TaskKind::Reduce => 'r',
    };
    let job = if id.job == JobId(1) {
        String::new()
    } else {
        format!("{}:", id.job.0)
    };
    format!("{job}{letter}{}", id.index)
}

pub fn name(id: AttemptId) -> String {
    format!("{}.{}", name_task(id.task), id.number)
}

fn names(inputs: &[MapOutput]) -> String {
    inputs
        .iter()
        .map(|input| format!(" {}", name(input.attempt)))
        .collect()
}

fn outcome(outcome: &JobOutcome) -> String {
    match outcome {
        JobOutcome::Succeeded => "succeeded".to_owned(),
        JobOutcome::Failed { reason } => format!("failed: {reason}"),
        JobOutcome::Killed { reason } => format!("killed: {reason}"),
    }
}

fn order(worker: WorkerId, order: &Order) -> String {
    match order {
        Order::Launch {
            attempt,
            from,
            inputs,
        } => {
            let from = match from {
                Start::Fresh => String::new(),
                Start::Checkpoint(of) => format!(" from {}", name(*of)),
            };
            let reading = if inputs.is_empty() {
                String::new()
            } else {
                format!(" reading{}", names(inputs))
            };
            format!("launch {} on {}{from}{reading}", name(*attempt), worker.0)
        }
        Order::MoreInputs { attempt, inputs } => {
            format!("tell {} of{}", name(*attempt), names(inputs))
        }
        other => format!("{} {}", other.verb(), name(other.attempt())),
    }
}

fn record(record: &Record) -> String {
    match record {
        Record::JobAccepted(job) => format!("accepted {}", job.0),
        Record::AttemptLaunched {
            attempt,
            worker,
            duplicate_of,
        } => {
            let duplicate = duplicate_of
                .map_or_else(String::new, |of| format!(" as duplicate of {}", name(of)));
            format!("launched {} on {}{duplicate}", name(*attempt), worker.0)
        }
        Record::WorkerDraining(worker) => format!("draining {}", worker.0),
        Record::WorkerUndrained(worker) => format!("undrained {}", worker.0),
        Record::WorkerExcluded { worker, until } => {
            format!("excluded {} until {}ms", worker.0, until.0 / 1000)
        }
        Record::WorkerShort { worker, lacks } => {
            format!(
                "short {}: {}",
                worker.0,
                lacks.as_deref().unwrap_or("nothing")
            )
        }
        Record::TaskIsolated { task, reason } => format!("alone {}: {reason}", name_task(*task)),
        Record::WorkerLeft(worker) => format!("left {}", worker.0),
        Record::CommitGranted(attempt) => format!("granted {}", name(*attempt)),
        Record::TaskDone(attempt) => format!("done {}", name(*attempt)),
        Record::OutputLost(task) => format!("lost {}", name_task(*task)),
        Record::OutputMoved(attempt) => format!("moved {}", name(*attempt)),
        Record::AttemptEnded(attempt, why) => format!("ended {}: {why}", name(*attempt)),
        Record::Checkpointed(attempt) => format!("checkpointed {}", name(*attempt)),
        Record::PreemptRequested {
            attempt, primitive, ..
        } => {
            format!("wanted {primitive} {}", name(*attempt))
        }
        Record::PreemptWithdrawn { attempt, reason } => {
            format!("withdrawn {}: {reason}", name(*attempt))
        }
        Record::Suspended(attempt) => format!("suspended {}", name(*attempt)),
        Record::Resumed(attempt) => format!("resumed {}", name(*attempt)),
        Record::SlotUnused { freed, job, .. } => {
            format!("slot of {} unused by {job}", name(*freed))
        }
        Record::SlotTaken { freed, by } => format!("slot of {} to {}", name(*freed), name(*by)),
        Record::SuspendRefused {
            attempt, instead, ..
        } => {
            let instead = instead.map_or_else(String::new, |instead| format!(" so {instead}"));
            format!("refused {}{instead}", name(*attempt))
        }
        Record::Converted {
            attempt, primitive, ..
        } => format!("given up {} {primitive}", name(*attempt)),
        Record::AttemptHeld { attempt, .. } => format!("held {}", name(*attempt)),
        Record::AttemptReleased { attempt, .. } => format!("released {}", name(*attempt)),
        Record::JobHeld { job, .. } => format!("held {}", job.0),
        Record::JobChanged { job, change, .. } => {
            format!("changed {}: {}", job.0, change.in_words())
        }
        Record::JobReleased { job, .. } => format!("released {}", job.0),
        Record::JobDecided(job, how) => format!("decided {} {}", job.0, outcome(how)),
        Record::JobEnded(job, how) => format!("ended {} {}", job.0, outcome(how)),
    }
}

/// Formats an effect for a scenario.
pub fn describe(effect: &Effect) -> String {
    match effect {
        Effect::Record(what) => format!("record {}", record(what)),
        Effect::Send {
            worker,
            order: what,
        } => order(*worker, what),
        Effect::WakeAt(time) => format!("wake at {}ms", time.0 / 1000),
        Effect::WorkerMayLeave { worker } => format!("leave {}", worker.0),
        Effect::JobEnded { job, outcome: how } => format!("job {} {}", job.0, outcome(how)),
        Effect::SubmitWanted { name } => format!("submit {name}"),
        Effect::Warn { message } => format!("warn {message}"),
    }
}

/// Parses a time such as `5ms`.
pub fn millis(text: &str) -> Span {
    Span::from_millis(u64::from(number(
        text.strip_suffix("ms").expect("times are written 20ms"),
    )))
}
