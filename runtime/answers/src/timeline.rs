//! The timeline of a page: which attempt held which slot when, in columns.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use napreduce_engine::{AttemptId, JobId, TaskKind, WorkerId};
use napreduce_history::{LedgerEntry, Nap, StintEnd, Timeline, assign_lanes, ledger_of};
use napreduce_protocol::{JobDetail, JobSummary, PreemptionSummary};
use schemars::JsonSchema;
use serde::Serialize;

use super::preemptions::PreemptionAnswer;
use super::thinned::{Bar, LISTED_MAX, all, is_too_much, thinned};

/// A time window, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineWindow {
    pub from_micros: u64,
    /// Open stints and naps extend to here.
    pub until_micros: u64,
}

/// The stints and naps of jobs. Times count from `base_micros`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct TimelineAnswer {
    /// Microseconds since 1970.
    pub base_micros: u64,
    pub until_micros: u64,
    /// Jobs of the window that are not shown because there are too many.
    pub jobs_left_out: usize,
    /// Stints in the window: the number of rows unless the answer is thinned.
    pub stints_total: usize,
    /// Time that slots were held in the window, over all stints.
    pub held_micros: u64,
    /// Time that work waited in naps in the window.
    pub napped_micros: u64,
    /// Whether a row can stand for several stints because a page cannot hold all: stints narrower than a column of
    /// their lane are merged. A shorter window shows each.
    pub is_thinned: bool,
    /// Naps that are not listed: all of them if the answer is thinned.
    pub naps_left_out: usize,
    /// Preemptions of drawn stints that are not listed in a thinned answer.
    pub preemptions_left_out: usize,
    /// The jobs of the stints, by number; the column `job` contains these numbers.
    pub jobs: Vec<TimelineJobAnswer>,
    /// Ordered by worker and kind; as many of a kind as were in use at once.
    pub lanes: Vec<LaneAnswer>,
    /// Ordered by lane, then time.
    pub stints: StintAnswer,
    /// Ordered by time.
    pub naps: Vec<NapAnswer>,
    /// The requests that ended stints and started naps.
    pub preemptions: Vec<PreemptionAnswer>,
    /// Ends of unsuccessful attempts, by the row of their last stint; at most 500 in a thinned answer.
    pub ends: BTreeMap<u32, String>,
    /// The attempts whose checkpoints were restored, by the row of the first stint; at most 500 in a thinned answer.
    pub restores: BTreeMap<u32, String>,
}

/// A job whose work is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TimelineJobAnswer {
    pub number: u32,
    pub name: String,
    pub user: String,
    pub queue: String,
}

/// A slot, as drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LaneAnswer {
    pub worker: String,
    pub worker_name: String,
    /// `map` or `reduce`.
    pub kind: &'static str,
    /// Number among the worker's slots of the same kind, from 0.
    pub number: u32,
}

/// Stints as columns of equal length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StintAnswer {
    pub start: Vec<u64>,
    pub length: Vec<u64>,
    /// Time at the start of the stint in which the process was starting.
    pub starting: Vec<u64>,
    /// Index in `lanes`.
    pub lane: Vec<u32>,
    /// The attempt `attempt` of the task with index `task` of job `job`.
    pub job: Vec<u32>,
    pub task: Vec<u32>,
    pub attempt: Vec<u32>,
    /// 0 running, 1 suspended, 2 checkpointed, 3 killed for another job, 4 succeeded, 5 failed, lost or no longer needed.
    pub end: Vec<u8>,
    /// Index in `preemptions`, or -1.
    pub preemption: Vec<i32>,
    /// Number of stints that the row stands for; the other columns, except start and length, describe one of them.
    /// Empty unless the answer is thinned.
    pub count: Vec<u32>,
}

/// A period in which the work of a task waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NapAnswer {
    pub start: u64,
    pub length: u64,
    pub attempt: String,
    /// The worker with its memory or checkpoint.
    pub worker: String,
    /// Whether the memory is kept; otherwise the work is in a checkpoint.
    pub is_suspended: bool,
    /// Index in `preemptions`.
    pub preemption: u32,
}

const SUCCEEDED: u8 = 4;
const ENDED: u8 = 5;

impl TimelineAnswer {
    /// Builds the timeline of jobs in a window. With `columns` it is thinned to that many columns per lane if it has too
    /// many stints.
    pub fn of<'job>(
        jobs: impl IntoIterator<Item = &'job JobDetail>,
        window: TimelineWindow,
        columns: Option<u32>,
    ) -> TimelineAnswer {
        let TimelineWindow {
            from_micros,
            until_micros,
        } = window;
        let mut stints = Vec::new();
        let mut naps = Vec::new();
        let mut names = HashMap::new();
        let mut summaries = BTreeMap::new();
        let mut known = Preemptions::default();
        for job in jobs {
            let timeline = Timeline::new(job, until_micros);
            summaries.insert(job.summary.job, &job.summary);
            stints.extend(timeline.stints);
            naps.extend(timeline.naps);
            known.ledger.extend(
                ledger_of(job)
                    .into_iter()
                    .map(|entry| (key(entry.preemption), entry)),
            );
            names.extend(
                job.attempts
                    .iter()
                    .map(|attempt| (attempt.worker, attempt.worker_name.as_str())),
            );
        }
        // Assign lanes before cutting to the window, so that a stint is drawn on the same lane in every window.
        let mut placed = assign_lanes(stints);
        placed.retain(|(_, stint)| {
            stint.until_micros >= from_micros && stint.from_micros <= until_micros
        });
        naps.retain(|nap| nap.until_micros >= from_micros && nap.from_micros <= until_micros);
        placed.sort_by_key(|(lane, stint)| {
            (*lane, stint.from_micros, stint.until_micros, stint.attempt)
        });
        naps.sort_by_key(|nap| (nap.from_micros, nap.attempt));
        let starts = placed.iter().map(|(_, stint)| stint.from_micros);
        let base_micros = starts.min().unwrap_or(from_micros).max(from_micros);
        let within = |from: u64, until: u64| {
            until
                .min(until_micros)
                .saturating_sub(from.max(base_micros))
        };
        let mut answer = TimelineAnswer {
            base_micros,
            until_micros,
            stints_total: placed.len(),
            held_micros: placed
                .iter()
                .map(|(_, one)| within(one.from_micros, one.until_micros))
                .sum(),
            napped_micros: naps
                .iter()
                .map(|one| within(one.from_micros, one.until_micros))
                .sum(),
            ..TimelineAnswer::default()
        };
        let columns = columns.filter(|_| is_too_much(&placed, naps.len()));
        let bars = match columns {
            None => all(placed),
            Some(columns) => {
                answer.is_thinned = true;
                answer.naps_left_out = naps.drain(..).count();
                thinned(&placed, (base_micros, until_micros), columns)
            }
        };
        let drawn: BTreeSet<JobId> = bars.iter().map(|bar| bar.stint.attempt.task.job).collect();
        let of_bars = |(job, summary): (&JobId, &&JobSummary)| {
            drawn.contains(job).then(|| TimelineJobAnswer {
                number: job.0,
                name: summary.name.clone(),
                user: summary.user.clone(),
                queue: summary.queue.clone(),
            })
        };
        answer.jobs = summaries.iter().filter_map(of_bars).collect();
        for bar in &bars {
            answer.add_bar(bar, &names, &mut known);
        }
        for nap in &naps {
            answer.add_nap(nap, &mut known);
        }
        answer.preemptions = known.answers;
        answer.preemptions_left_out = known.left_out;
        answer
    }

    fn add_bar(
        &mut self,
        Bar { lane, stint, count }: &Bar<'_>,
        names: &HashMap<WorkerId, &str>,
        known: &mut Preemptions<'_>,
    ) {
        let drawn = LaneAnswer {
            worker: lane.worker.to_string(),
            worker_name: names
                .get(&lane.worker)
                .copied()
                .unwrap_or_default()
                .to_owned(),
            kind: if lane.is_reduce { "reduce" } else { "map" },
            number: lane.number,
        };
        if self.lanes.last() != Some(&drawn) {
            self.lanes.push(drawn);
        }
        let row = self.stints.start.len() as u32;
        let end = match stint.end {
            StintEnd::Open => 0,
            StintEnd::Suspended => 1,
            StintEnd::Checkpointed => 2,
            StintEnd::Killed => 3,
            StintEnd::Ended if stint.has_succeeded() => SUCCEEDED,
            StintEnd::Ended => ENDED,
        };
        let is_listed = |listed: usize| !self.is_thinned || listed < LISTED_MAX;
        if let Some(text) = stint
            .end_text
            .filter(|_| end == ENDED && is_listed(self.ends.len()))
        {
            self.ends.insert(row, text.to_owned());
        }
        let restore = stint.restore.filter(|_| is_listed(self.restores.len()));
        if let Some(restore) = restore.filter(|restore| restore.ordered_micros <= stint.from_micros)
        {
            self.restores.insert(row, restore.from.to_string());
        }
        let start = stint.from_micros.max(self.base_micros);
        let columns = &mut self.stints;
        columns.start.push(start - self.base_micros);
        let is_one = *count == 1;
        let started = stint
            .started_micros
            .filter(|_| is_one)
            .unwrap_or(start)
            .min(self.until_micros);
        columns.starting.push(started.saturating_sub(start));
        columns.length.push(
            stint
                .until_micros
                .min(self.until_micros)
                .saturating_sub(start),
        );
        columns.lane.push(self.lanes.len() as u32 - 1);
        columns.job.push(stint.attempt.task.job.0);
        columns.task.push(stint.attempt.task.index);
        columns.attempt.push(stint.attempt.number);
        columns.end.push(end);
        let preemption = stint
            .preemption
            .filter(|_| !self.is_thinned || known.has_room(is_one));
        columns
            .preemption
            .push(preemption.map_or(-1, |preemption| known.row(preemption) as i32));
        if self.is_thinned {
            columns.count.push(*count);
        }
        debug_assert_eq!(stint.attempt.task.kind == TaskKind::Reduce, lane.is_reduce);
    }

    fn add_nap(&mut self, nap: &Nap<'_>, known: &mut Preemptions<'_>) {
        let start = nap.from_micros.max(self.base_micros);
        self.naps.push(NapAnswer {
            start: start - self.base_micros,
            length: nap
                .until_micros
                .min(self.until_micros)
                .saturating_sub(start),
            attempt: nap.attempt.to_string(),
            worker: nap.worker.to_string(),
            is_suspended: nap.is_suspended(),
            preemption: known.row(nap.preemption),
        });
    }
}

/// The preemptions that rows refer to, each once.
#[derive(Default)]
struct Preemptions<'job> {
    ledger: HashMap<(AttemptId, u64), LedgerEntry<'job>>,
    answers: Vec<PreemptionAnswer>,
    rows: HashMap<(AttemptId, u64), u32>,
    left_out: usize,
}

impl Preemptions<'_> {
    /// Whether a thinned answer lists one more: only the first ones, of rows that stand for one stint.
    fn has_room(&mut self, is_one: bool) -> bool {
        let has_room = is_one && self.answers.len() < LISTED_MAX;
        self.left_out += usize::from(!has_room);
        has_room
    }

    fn row(&mut self, preemption: &PreemptionSummary) -> u32 {
        let next = self.answers.len() as u32;
        let key = key(preemption);
        let row = *self.rows.entry(key).or_insert(next);
        if row == next {
            let alone = LedgerEntry {
                preemption,
                sequel: None,
            };
            self.answers
                .push(self.ledger.get(&key).unwrap_or(&alone).into());
        }
        row
    }
}

/// An attempt has at most one request at a time.
fn key(preemption: &PreemptionSummary) -> (AttemptId, u64) {
    (preemption.attempt, preemption.requested_micros)
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{JobId, Primitive, TaskId};
    use napreduce_protocol::{AttemptSummary, PreemptionEnd, ResumeSummary};

    use super::super::samples::detail;
    use super::*;

    const BASE: u64 = 1_790_000_000_000;

    /// A map that is suspended after 1 s for 2 s; another map on the same worker that fails, and its second attempt.
    fn napped() -> JobDetail {
        let mut job = detail();
        let attempt = |index, number| AttemptId {
            task: TaskId {
                job: JobId(7),
                kind: TaskKind::Map,
                index,
            },
            number,
        };
        let lived = |attempt, from: u64, until: u64, end: &str| AttemptSummary {
            attempt,
            worker: WorkerId(2),
            worker_name: "left-hand".to_owned(),
            launched_millis: BASE + from,
            ended_millis: Some(BASE + until),
            end: Some(end.to_owned()),
            figures: None,
            moments: None,
        };
        job.attempts = vec![
            lived(attempt(0, 1), 0, 5_000, "succeeded"),
            lived(attempt(1, 1), 0, 500, "failed: bad row"),
            lived(attempt(1, 2), 600, 4_000, "succeeded"),
        ];
        let micros = |millis: u64| (BASE + millis) * 1_000;
        let wanted =
            PreemptionSummary::wanted(micros(900), attempt(0, 1), WorkerId(2), Primitive::Suspend);
        let freed_micros = Some(micros(1_000));
        let end = Some(PreemptionEnd::Suspended);
        let ordered_micros = Some(micros(950));
        job.preemptions = vec![PreemptionSummary {
            freed_micros,
            ordered_micros,
            end,
            ..wanted
        }];
        job.resumes = vec![ResumeSummary {
            attempt: attempt(0, 1),
            worker: WorkerId(2),
            ordered_micros: micros(3_000),
            resumed_micros: Some(micros(3_001)),
            worker_micros: None,
            suspended_millis: 2_000,
            swapped_bytes: 0,
            swapped_in_bytes: 0,
        }];
        job
    }

    fn whole() -> TimelineWindow {
        TimelineWindow {
            from_micros: 0,
            until_micros: (BASE + 9_000) * 1_000,
        }
    }

    #[test]
    fn timeline_has_stints_naps_and_their_causes() {
        let job = napped();
        let answer = TimelineAnswer::of([&job], whole(), None);
        let lane = |number| LaneAnswer {
            worker: "worker_0002".to_owned(),
            worker_name: "left-hand".to_owned(),
            kind: "map",
            number,
        };
        assert_eq!(answer.lanes, [lane(0), lane(1)]);
        let StintAnswer {
            start,
            length,
            lane,
            task,
            attempt,
            end,
            preemption,
            ..
        } = &answer.stints;
        assert_eq!(start, &[0, 600_000, 0, 3_000_000]);
        assert_eq!(length, &[500_000, 3_400_000, 1_000_000, 2_000_000]);
        assert_eq!(lane, &[0, 0, 1, 1]);
        assert_eq!((task, attempt), (&vec![1, 1, 0, 0], &vec![1, 2, 1, 1]));
        assert_eq!((end, preemption), (&vec![5, 4, 1, 4], &vec![-1, -1, 0, -1]));
        assert_eq!(
            answer.ends,
            BTreeMap::from([(0, "failed: bad row".to_owned())])
        );
        assert_eq!(answer.preemptions.len(), 1);
        let nap = &answer.naps[0];
        assert_eq!(
            (nap.start, nap.length, nap.is_suspended, nap.preemption),
            (1_000_000, 2_000_000, true, 0)
        );
    }

    #[test]
    fn large_timeline_is_thinned() {
        let mut job = napped();
        let last = job.attempts.len() - 1;
        let count = 180_000;
        for index in 0..count {
            let mut attempt = job.attempts[last].clone();
            attempt.attempt.task.index = 2 + index;
            let begin = BASE + 10_000 + u64::from(index) * 10;
            (attempt.launched_millis, attempt.ended_millis) = (begin, Some(begin + 10));
            job.attempts.push(attempt);
        }
        let until_micros = (BASE + 10_000 + u64::from(count) * 10) * 1_000;
        let window = TimelineWindow {
            from_micros: 0,
            until_micros,
        };
        let whole = TimelineAnswer::of([&job], window, None);
        assert_eq!(
            (whole.is_thinned, whole.stints.start.len()),
            (false, whole.stints_total)
        );
        assert!(whole.stints.count.is_empty() && whole.naps_left_out == 0);
        let answer = TimelineAnswer::of([&job], window, Some(100));
        assert_eq!(
            (answer.is_thinned, answer.stints_total),
            (true, whole.stints_total)
        );
        assert_eq!((answer.naps.len(), answer.naps_left_out), (0, 1));
        let sums = |answer: &TimelineAnswer| (answer.held_micros, answer.napped_micros);
        assert_eq!(sums(&answer), sums(&whole));
        assert_eq!(whole.held_micros, whole.stints.length.iter().sum::<u64>());
        assert_eq!(
            whole.napped_micros,
            whole.naps.iter().map(|nap| nap.length).sum::<u64>()
        );
        let rows = answer.stints.start.len();
        assert!((100..=201 * answer.lanes.len()).contains(&rows), "{rows}");
        assert_eq!(answer.stints.count.len(), rows);
        assert_eq!(
            answer
                .stints
                .count
                .iter()
                .map(|count| *count as usize)
                .sum::<usize>(),
            whole.stints_total
        );
        let close = TimelineWindow {
            until_micros: (BASE + 9_000) * 1_000,
            ..window
        };
        let close = TimelineAnswer::of([&job], close, Some(100));
        assert_eq!(
            (close.is_thinned, close.stints_total, close.naps.len()),
            (false, 4, 1)
        );
    }

    #[test]
    fn window_uses_the_same_lanes_as_the_whole() {
        let job = napped();
        let window = TimelineWindow {
            from_micros: (BASE + 3_500) * 1_000,
            until_micros: (BASE + 4_500) * 1_000,
        };
        let answer = TimelineAnswer::of([&job], window, Some(9));
        assert_eq!(answer.base_micros, window.from_micros);
        assert_eq!(answer.stints.start, [0, 0]);
        assert_eq!(answer.stints.length, [500_000, 1_000_000]);
        assert_eq!(
            answer
                .lanes
                .iter()
                .map(|lane| lane.number)
                .collect::<Vec<_>>(),
            [0, 1]
        );
        assert!(answer.naps.is_empty() && answer.preemptions.is_empty());
        let empty = TimelineAnswer::of([], window, Some(9));
        assert_eq!(
            empty,
            TimelineAnswer {
                until_micros: window.until_micros,
                base_micros: window.from_micros,
                ..TimelineAnswer::default()
            }
        );
    }
}
