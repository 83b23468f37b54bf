//! The query parameter `sort`.

use std::cmp::Ordering;

use napreduce_answers::{
    FailureAnswer, FlowAnswer, GroupAnswer, PerformanceAnswer, PreemptionAnswer, TaskRow,
};
use napreduce_engine::{AttemptId, TaskId, TaskKind};
use napreduce_protocol::{
    AttemptFigures, AttemptSummary, HistoryLine, JobSummary, PhaseProgress, TaskSummary,
    WorkerSample, WorkerSummary,
};

use crate::problem::Problem;

/// The value that items are compared by. All keys of a field have the same variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey<'item> {
    Number(i128),
    Text(&'item str),
}

/// A field to sort by. Items without a key come last, ascending and descending.
pub struct SortField<T: ?Sized> {
    pub name: &'static str,
    key: KeyOf<T>,
}

enum KeyOf<T: ?Sized> {
    Item(fn(&T) -> Option<SortKey<'_>>),
    /// A duration, from begin to end.
    Length(fn(&T) -> Option<(u64, End)>),
}

enum End {
    At(u64),
    /// Still open; a millisecond has `units` of its units.
    Open {
        units: u64,
    },
}

const fn by<T>(name: &'static str, key: fn(&T) -> Option<SortKey<'_>>) -> SortField<T> {
    SortField {
        name,
        key: KeyOf::Item(key),
    }
}

const fn by_length<T>(name: &'static str, key: fn(&T) -> Option<(u64, End)>) -> SortField<T> {
    SortField {
        name,
        key: KeyOf::Length(key),
    }
}

impl<T> KeyOf<T> {
    /// `now_millis` is the end of open durations; without it they have no key.
    fn of<'item>(&self, item: &'item T, now_millis: Option<u64>) -> Option<SortKey<'item>> {
        match self {
            KeyOf::Item(key) => key(item),
            KeyOf::Length(key) => {
                let (begun, end) = key(item)?;
                let ended = match end {
                    End::At(ended) => ended,
                    End::Open { units } => now_millis?.saturating_mul(units),
                };
                number(ended.saturating_sub(begun))
            }
        }
    }
}

/// Returns the first `count` items in the order of the comma-separated fields `wanted`; a leading `-` sorts
/// descending. Equal items keep their order. Only the returned items are sorted, since a page is much
/// smaller than the list.
///
/// # Errors
/// `400` if a field is unknown; the message lists the known ones.
pub fn first<'all, T>(
    all: &[&'all T],
    fields: &[SortField<T>],
    wanted: &str,
    count: usize,
    now_millis: Option<u64>,
) -> Result<Vec<&'all T>, Problem> {
    let mut chosen = Vec::new();
    for word in wanted.split(',') {
        let (is_downwards, name) = word
            .strip_prefix('-')
            .map_or((false, word), |name| (true, name));
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
            return Err(Problem::invalid(format!(
                "cannot sort by {name:?}; expected {}; a leading - sorts descending",
                known.join(", ")
            )));
        };
        chosen.push((&field.key, is_downwards));
    }
    // `split` always yields at least one part.
    let (by, is_downwards) = chosen[0];
    let mut keyed: Vec<_> = all
        .iter()
        .enumerate()
        .map(|(at, item)| (by.of(item, now_millis), at))
        .collect();
    let order = |(one, at): &(Option<SortKey<'_>>, usize), (other, other_at): &(_, usize)| {
        let later = chosen[1..].iter().map(|(key, is_downwards)| {
            let key = |at: usize| key.of(all[at], now_millis);
            compare(key(*at), key(*other_at), *is_downwards)
        });
        std::iter::once(compare(*one, *other, is_downwards))
            .chain(later)
            .find(|order| order.is_ne())
            .unwrap_or_else(|| at.cmp(other_at))
    };
    if count < keyed.len() {
        keyed.select_nth_unstable_by(count, order);
        keyed.truncate(count);
    }
    keyed.sort_unstable_by(order);
    Ok(keyed.into_iter().map(|(_, at)| all[at]).collect())
}

fn compare(one: Option<SortKey<'_>>, other: Option<SortKey<'_>>, is_downwards: bool) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) if is_downwards => other.cmp(&one),
        (Some(one), Some(other)) => one.cmp(&other),
        (one, other) => one.is_none().cmp(&other.is_none()),
    }
}

fn number(value: impl Into<i128>) -> Option<SortKey<'static>> {
    Some(SortKey::Number(value.into()))
}

fn text(value: &str) -> Option<SortKey<'_>> {
    Some(SortKey::Text(value))
}

fn task(id: TaskId) -> Option<SortKey<'static>> {
    let kind = i128::from(id.kind == TaskKind::Reduce);
    number((i128::from(id.job.0) << 33) | (kind << 32) | i128::from(id.index))
}

fn attempt(id: AttemptId) -> Option<SortKey<'static>> {
    let Some(SortKey::Number(task)) = task(id.task) else {
        return None;
    };
    number((task << 32) | i128::from(id.number))
}

/// Duration in milliseconds.
fn took(begun: u64, ended: Option<u64>) -> Option<(u64, End)> {
    Some((begun, ended.map_or(End::Open { units: 1 }, End::At)))
}

/// Microseconds from the request until the slot was free.
fn freed(one: &PreemptionAnswer) -> Option<(u64, End)> {
    let end = match (one.freed_micros, one.end) {
        (Some(freed), _) => End::At(freed),
        (None, None) => End::Open { units: 1_000 },
        // The request was withdrawn, or its attempt ended first.
        (None, Some(_)) => return None,
    };
    Some((one.requested_micros, end))
}

/// Milliseconds that the process was suspended, up to now if it still waits for its slot.
fn suspended(one: &PreemptionAnswer) -> Option<(u64, End)> {
    if let Some(millis) = one.suspended_millis {
        return Some((0, End::At(millis)));
    }
    let is_suspended = one.end == Some("suspended") && one.given_back == Some("waiting");
    Some((
        one.freed_micros.filter(|_| is_suspended)? / 1_000,
        End::Open { units: 1 },
    ))
}

fn figure(attempt: &AttemptSummary, value: fn(&AttemptFigures) -> u64) -> Option<SortKey<'static>> {
    attempt.figures.as_ref().map(value).and_then(number)
}

fn task_figure(task: &TaskRow, value: fn(&AttemptFigures) -> u64) -> Option<SortKey<'static>> {
    task.figures().map(value).and_then(number)
}

fn done(phase: &PhaseProgress) -> Option<SortKey<'static>> {
    if phase.tasks == 0 {
        None
    } else {
        number(phase.percent())
    }
}

/// Progress of the running attempts in permille.
fn progress(task: &TaskSummary) -> Option<SortKey<'static>> {
    let known = task.live.iter().filter(|live| live.bytes_total > 0);
    known
        .map(|live| live.bytes_done.saturating_mul(1_000) / live.bytes_total)
        .max()
        .and_then(number)
}

pub const JOBS: &[SortField<JobSummary>] = &[
    by("job", |job| number(job.job.0)),
    by("name", |job| text(&job.name)),
    by("user", |job| text(&job.user)),
    by("queue", |job| text(&job.queue)),
    by("priority", |job| number(job.priority)),
    by("state", |job| text(job.phase.in_words())),
    by("map", |job| done(&job.progress.map)),
    by("reduce", |job| done(&job.progress.reduce)),
    by("submitted", |job| number(job.submitted_millis)),
    by("ended", |job| job.ended_millis.and_then(number)),
    by_length("took", |job| took(job.submitted_millis, job.ended_millis)),
    by("left", |job| {
        job.progress
            .left
            .and_then(|left| number(left.likely.as_micros()))
    }),
];

pub const TASKS: &[SortField<TaskRow>] = &[
    by("rank", |one| number(one.rank())),
    by("task", |one| task(one.summary().task)),
    by("state", |one| number(one.summary().state as u8)),
    by("attempts", |one| number(one.summary().attempts)),
    by("progress", |one| progress(one.summary())),
    by("worker", |one| {
        one.main().and_then(|main| number(main.worker.0))
    }),
    by("launched", |one| {
        one.main().and_then(|main| number(main.launched_millis))
    }),
    by("took", |one| one.took_millis.and_then(number)),
    by("read", |one| {
        task_figure(one, |figures| figures.input_bytes)
    }),
    by("wrote", |one| {
        task_figure(one, |figures| figures.output_bytes)
    }),
    by("records", |one| {
        task_figure(one, |figures| figures.input_records)
    }),
    by("shuffle", |one| {
        task_figure(one, |figures| figures.shuffle_millis)
    }),
    by("processor", |one| {
        task_figure(one, |figures| figures.processor_millis)
    }),
    by("memory", |one| {
        task_figure(one, |figures| figures.peak_memory_bytes)
    }),
    by("naps", |one| number(one.naps)),
    by("failures", |one| number(one.failures)),
];

pub const ATTEMPTS: &[SortField<AttemptSummary>] = &[
    by("attempt", |one| attempt(one.attempt)),
    by("worker", |one| number(one.worker.0)),
    by("launched", |one| number(one.launched_millis)),
    by("ended", |one| one.ended_millis.and_then(number)),
    by_length("took", |one| took(one.launched_millis, one.ended_millis)),
    by("end", |one| one.end.as_deref().and_then(text)),
    by("read", |one| figure(one, |figures| figures.input_bytes)),
    by("wrote", |one| figure(one, |figures| figures.output_bytes)),
    by("records", |one| {
        figure(one, |figures| figures.input_records)
    }),
    by("shuffle", |one| {
        figure(one, |figures| figures.shuffle_millis)
    }),
    by("processor", |one| {
        figure(one, |figures| figures.processor_millis)
    }),
];

pub const WORKERS: &[SortField<WorkerSummary>] = &[
    by("worker", |one| number(one.worker.0)),
    by("name", |one| text(&one.name)),
    by("host", |one| text(&one.host)),
    by("rack", |one| text(&one.rack)),
    by("state", |one| number(one.state as u8)),
    by("map", |one| number(one.map_slots.1)),
    by("reduce", |one| number(one.reduce_slots.1)),
    by("silent", |one| number(one.silent_millis)),
];

pub const WORKER_CHANGES: &[SortField<WorkerSample>] = &[
    by("at", |one| number(one.at_millis)),
    by("worker", |one| number(one.worker.0)),
    by("name", |one| text(&one.name)),
    by("host", |one| text(&one.host)),
    by("state", |one| number(one.state as u8)),
];

pub const PERFORMANCE: &[SortField<PerformanceAnswer>] = &[
    by("worker", |one| text(&one.worker)),
    by("succeeded", |one| number(one.succeeded)),
    by("failed", |one| number(one.failed)),
    by("speed", |one| {
        one.speed.and_then(|speed| number((speed * 1e3) as i64))
    }),
];

pub const FAILURES: &[SortField<FailureAnswer>] = &[
    by("ended", |one| number(one.ended_millis)),
    by("attempt", |one| text(&one.attempt)),
    by("worker", |one| text(&one.worker)),
];

pub const PREEMPTIONS: &[SortField<PreemptionAnswer>] = &[
    by("requested", |one| number(one.requested_micros)),
    by("attempt", |one| text(&one.attempt)),
    by("worker", |one| text(&one.worker)),
    by("primitive", |one| text(&one.primitive)),
    by("by", |one| text(&one.by)),
    by("beneficiary", |one| {
        one.beneficiary.as_deref().and_then(text)
    }),
    by("end", |one| one.end.and_then(text)),
    by_length("took", freed),
    by_length("suspended", suspended),
    by("resident", |one| number(one.resident_bytes)),
    by("checkpoint", |one| number(one.checkpoint_bytes)),
    by("saved", |one| number(one.work_saved_millis)),
    by("lost", |one| number(one.work_lost_millis)),
];

pub const GROUPS: &[SortField<GroupAnswer>] = &[
    by("requested", |one| number(one.requested_micros)),
    by("count", |one| number(one.count)),
    by("victim", |one| text(&one.victim)),
    by("beneficiary", |one| {
        one.beneficiary.as_deref().and_then(text)
    }),
    by("primitive", |one| text(&one.primitive)),
    by("free", |one| one.free_micros.and_then(number)),
    by("slot", |one| number(one.slot_millis)),
    by("saved", |one| number(one.work_saved_millis)),
    by("lost", |one| number(one.work_lost_millis)),
];

pub const FLOWS: &[SortField<FlowAnswer>] = &[
    by("from", |one| text(&one.from)),
    by("to", |one| one.to.as_deref().and_then(text)),
    by("primitive", |one| text(&one.primitive)),
    by("count", |one| number(one.count)),
    by("slot", |one| number(one.slot_millis)),
    by("saved", |one| number(one.work_saved_millis)),
    by("lost", |one| number(one.work_lost_millis)),
];

pub const EVENTS: &[SortField<HistoryLine>] = &[by("at", |one| number(one.at_millis))];

#[cfg(test)]
mod tests {
    use napreduce_answers::samples::job;
    use napreduce_protocol::JobPhase;

    use super::*;

    fn sorted(wanted: &str, now_millis: Option<u64>) -> Vec<u32> {
        let mut jobs = [
            job(1, JobPhase::Succeeded, 0, 0),
            job(2, JobPhase::Running, 1, 0),
            job(3, JobPhase::Failed, 0, 0),
            job(10, JobPhase::Succeeded, 0, 0),
        ];
        jobs[2].ended_millis = Some(jobs[2].submitted_millis + 9);
        let all: Vec<&JobSummary> = jobs.iter().collect();
        let numbers = |count| -> Vec<u32> {
            let first = first(&all, JOBS, wanted, count, now_millis).expect("known fields");
            first.iter().map(|job| job.job.0).collect()
        };
        let whole = numbers(usize::MAX);
        for count in 0..=4 {
            assert_eq!(
                numbers(count),
                whole[..count],
                "the first {count} by {wanted}"
            );
        }
        whole
    }

    #[test]
    fn list_sorts_both_ways_with_missing_keys_last() {
        let sorted = |wanted| sorted(wanted, None);
        assert_eq!(sorted("job"), [1, 2, 3, 10]);
        assert_eq!(sorted("-job"), [10, 3, 2, 1]);
        assert_eq!(sorted("took"), [3, 1, 10, 2]);
        assert_eq!(sorted("-took"), [1, 10, 3, 2]);
        assert_eq!(sorted("state,-job"), [3, 2, 10, 1]);
        // Equal items keep their order.
        assert_eq!(sorted("priority"), [1, 2, 3, 10]);
    }

    #[test]
    fn running_items_sort_by_the_time_until_now() {
        let submitted = job(1, JobPhase::Running, 1, 0).submitted_millis;
        assert_eq!(sorted("-took", Some(submitted + 9_000)), [2, 1, 10, 3]);
        assert_eq!(sorted("took", Some(submitted + 20)), [3, 2, 1, 10]);
    }

    #[test]
    fn unknown_sort_field_is_refused() {
        let detail = first(&[], ATTEMPTS, "took,-speed", 1, None)
            .expect_err("unknown field")
            .detail;
        assert_eq!(
            detail,
            "cannot sort by \"speed\"; expected attempt, worker, launched, ended, took, end, read, wrote, records, \
             shuffle, processor; a leading - sorts descending"
        );
    }
}
