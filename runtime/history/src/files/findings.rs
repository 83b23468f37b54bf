//! Findings: the reasons why a job is or was slow, with figures, from its attempts, counters and preemptions.
//!
//! Every finding needs a ratio, so that the usual variance of tasks gives none, and a cost of at least a second and a
//! twentieth of the job, so that it is worth reading. The constants below give the reason of each ratio.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind, WorkerId, listed};
use napreduce_protocol::{
    AttemptFigures, AttemptSummary, ByteSize, Counter, JobDetail, TaskSummary,
};

use super::head::{median_without, quantile};
use super::lengths::{Interval, suspensions};

/// A task is an outlier from this many medians on. Tasks of one kind usually stay within a factor of two, also on busy
/// machines; Spark and Hadoop duplicate tasks from 1.5 times the median on, but a finding blames, and must be surer.
const OUTLIER_MEDIANS: u64 = 3;
/// A median of times needs this many finished tasks.
const FINISHED_MIN: usize = 3;
/// A key explains a skewed reduce if it has half of its records.
const HOT_KEY_PERCENT: u64 = 50;
/// A worker is slow at half the speed of the others: caches and neighbours explain less than that.
const SLOW_SPEED_PERCENT: u64 = 50;
/// A worker is judged by the median of this many tasks, against as many of other workers.
const TASKS_PER_WORKER_MIN: usize = 5;
/// Preemption matters from this share of the time that the job held slots.
const PREEMPTED_PERCENT: u64 = 10;
/// Fewer maps than this start within seconds on any cluster.
const SMALL_MAPS_MIN: usize = 100;
/// A sixteenth of the default split.
const SMALL_MAP_BYTES_MAX: u64 = 4 << 20;
/// Reduces that wait for more than half of their time would have finished as early with half of the slots.
const WAITING_PERCENT: u64 = 50;
/// Less waiting than this is what starting reduces early costs any job.
const WAITING_MICROS_MIN: u64 = 30 * SECOND;
/// Each record is written once, when a map seals its output. From here on, half of them were written once more.
const SPILLED_PERCENT: u64 = 150;
/// Less than this is written within a second.
const SPILLED_BYTES_MIN: u64 = 64 << 20;
/// The smallest cost of a finding: people do not look into less.
const COST_MICROS_MIN: u64 = SECOND;
/// The smallest cost as a part of the job.
const COST_PART: u64 = 20;
/// Tasks that must have failed on a worker and succeeded elsewhere before it counts as failing.
const FAILED_TASKS_MIN: usize = 2;
/// Findings of one code; the costliest ones are returned.
const PER_CODE_MAX: usize = 3;
const SECOND: u64 = 1_000_000;

listed! {
    /// The kind of a finding. The order is that of a list of findings.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum FindingCode {
        /// A task had far more input than the others, and the job waited for it.
        Skew = "skew",
        /// A key has most records of a skewed reduce.
        HotKey = "hot-key",
        /// A task took far longer than the others without having more input.
        Straggler = "straggler",
        /// Attempts failed on one worker, and their tasks succeeded on others.
        FailingWorker = "failing-worker",
        /// Tasks took longer on one worker.
        SlowWorker = "slow-worker",
        /// Work was lost, or slots were held while suspended.
        Preempted = "preempted",
        /// Many maps took longer to start than to work.
        SmallFiles = "small-files",
        /// Reduces held slots while they waited for maps.
        WaitingForMaps = "waiting-for-maps",
        /// Records were written to disk more than once.
        Spills = "spills",
    }
}

/// A cause of slowness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub code: FindingCode,
    /// A sentence without a full stop.
    pub text: String,
    /// IDs of tasks, attempts, workers and jobs in it.
    pub about: Vec<String>,
    /// Its numbers, by a name that ends with the unit.
    pub figures: BTreeMap<&'static str, u64>,
    /// The remedy; a command follows a colon.
    pub remedy: Option<String>,
    cost_micros: u64,
}

/// Returns what makes or made a job slow, in the order of the codes, the costliest of each first. `tasks` is empty for
/// ended jobs; `now_micros` is in microseconds since 1970.
pub fn findings_of(detail: &JobDetail, tasks: &[TaskSummary], now_micros: u64) -> Vec<Finding> {
    let evidence = Evidence::new(detail, tasks, now_micros);
    let mut findings = Vec::new();
    for phase in [Some(&evidence.maps), evidence.reduces.as_ref()]
        .into_iter()
        .flatten()
    {
        evidence.outliers(phase, &mut findings);
        evidence.slow_workers(phase, &mut findings);
    }
    evidence.hot_keys(&mut findings);
    evidence.failing_workers(&mut findings);
    findings.extend(evidence.preempted());
    findings.extend(evidence.small_files());
    findings.extend(evidence.waiting_for_maps());
    findings.extend(evidence.spills());
    findings.sort_by_key(|finding| (finding.code, std::cmp::Reverse(finding.cost_micros)));
    let mut of_code: BTreeMap<FindingCode, usize> = BTreeMap::new();
    findings.retain(|finding| {
        let count = of_code.entry(finding.code).or_default();
        *count += 1;
        *count <= PER_CODE_MAX
    });
    findings
}

/// The attempt of a task that counts: its last successful one, else its oldest running one.
struct Run<'a> {
    attempt: &'a AttemptSummary,
    /// Time that it ran; for a reduce, after the last map.
    active: u64,
    ended: Option<u64>,
    records: u64,
    bytes: u64,
}

/// The maps or the reduces of a job.
struct Phase<'a> {
    kind: TaskKind,
    /// Tasks that have not begun are not in `runs`.
    tasks: usize,
    runs: Vec<Run<'a>>,
}

impl<'a> Phase<'a> {
    fn finished(&self) -> impl Iterator<Item = &Run<'a>> {
        self.runs.iter().filter(|run| run.ended.is_some())
    }

    /// Returns the last end once every task has finished.
    fn end(&self) -> Option<u64> {
        let is_over = self.runs.len() >= self.tasks && self.finished().count() == self.runs.len();
        self.runs
            .iter()
            .filter_map(|run| run.ended)
            .max()
            .filter(|_| is_over)
    }

    fn last_two(&self, until: u64) -> LastTwo {
        let mut ends: Vec<u64> = self
            .runs
            .iter()
            .map(|run| run.ended.unwrap_or(u64::MAX))
            .collect();
        ends.sort_unstable();
        let all_begun = self.runs.len() >= self.tasks;
        let before_last = ends
            .len()
            .checked_sub(2)
            .map(|at| ends[at])
            .filter(|_| all_begun);
        LastTwo {
            last: ends.last().copied().unwrap_or(0),
            before_last,
            until,
        }
    }
}

/// The last two ends of a phase; a running task ends after all others.
struct LastTwo {
    last: u64,
    /// `None` if a task has not begun.
    before_last: Option<u64>,
    until: u64,
}

impl LastTwo {
    /// Returns how long the phase waited, or has waited, for this task alone.
    fn held_up(&self, run: &Run<'_>) -> u64 {
        let is_last = run.ended.unwrap_or(u64::MAX) == self.last;
        let before = self.before_last.filter(|_| is_last).unwrap_or(u64::MAX);
        self.last.min(self.until).saturating_sub(before)
    }
}

/// How the attempts on a worker ended.
#[derive(Default)]
struct Ends<'a> {
    failed: Vec<&'a AttemptSummary>,
    succeeded: usize,
}

/// A job, indexed.
struct Evidence<'a> {
    detail: &'a JobDetail,
    times: ActiveTimes,
    /// The smallest cost that is worth a finding.
    cost_min: u64,
    maps: Phase<'a>,
    maps_end: Option<u64>,
    /// `None` before the end of the maps: reduces that wait for maps are not slow.
    reduces: Option<Phase<'a>>,
}

/// When attempts were running.
struct ActiveTimes {
    suspensions: BTreeMap<AttemptId, Vec<Interval>>,
    /// The end of the job, or now.
    until: u64,
}

impl ActiveTimes {
    /// Returns how long an attempt was running between two times.
    fn between(&self, attempt: &AttemptSummary, from: u64, until: u64) -> u64 {
        let until = until.min(self.end(attempt));
        let mut active = 0;
        let mut at = attempt.launched_micros().max(from);
        for (suspended, resumed) in self.suspensions.get(&attempt.attempt).into_iter().flatten() {
            active = sum([active, (*suspended).min(until).saturating_sub(at)]);
            at = at.max(*resumed);
        }
        sum([active, until.saturating_sub(at)])
    }

    fn end(&self, attempt: &AttemptSummary) -> u64 {
        attempt.ended_micros().unwrap_or(self.until)
    }
}

impl<'a> Evidence<'a> {
    fn new(detail: &'a JobDetail, tasks: &[TaskSummary], now_micros: u64) -> Evidence<'a> {
        let until = detail
            .summary
            .ended_millis
            .map_or(now_micros, |ended| ended.saturating_mul(1_000));
        let begun = detail
            .attempts
            .iter()
            .map(AttemptSummary::launched_micros)
            .min()
            .unwrap_or(until);
        let live = tasks.iter().flat_map(|task| &task.live);
        let totals = live.map(|live| (live.attempt, live.bytes_total)).collect();
        let times = ActiveTimes {
            suspensions: suspensions(detail),
            until,
        };
        let phase = |kind, tasks: u32, from| Phase {
            kind,
            tasks: tasks as usize,
            runs: runs(detail, &totals, kind, |attempt| {
                times.between(attempt, from, u64::MAX)
            }),
        };
        let progress = &detail.summary.progress;
        let maps = phase(TaskKind::Map, progress.map.tasks, 0);
        let maps_end = maps.end();
        let reduces = maps_end.map(|end| phase(TaskKind::Reduce, progress.reduce.tasks, end));
        Evidence {
            detail,
            cost_min: COST_MICROS_MIN.max(until.saturating_sub(begun) / COST_PART),
            maps,
            maps_end,
            reduces,
            times,
        }
    }

    /// Finds tasks that had far more input, and tasks that took far longer without it.
    fn outliers(&self, phase: &Phase<'_>, findings: &mut Vec<Finding>) {
        let mut finished: Vec<u64> = phase.finished().map(|run| run.active).collect();
        if finished.is_empty() {
            return;
        }
        finished.sort_unstable();
        let sizes = Sizes::of(phase);
        let is_timed = finished.len() >= FINISHED_MIN && finished.len() * 2 >= phase.tasks;
        let last_two = phase.last_two(self.times.until);
        for run in &phase.runs {
            let others = if run.ended.is_some() {
                median_without(&finished, run.active)
            } else {
                quantile(&finished, 50)
            };
            let Some(usual) = others else { continue };
            let over = run.active.saturating_sub(usual);
            let held = last_two.held_up(run).min(over);
            let expected = sizes
                .as_ref()
                .map_or(usual, |sizes| sizes.expected(run, usual));
            let cost = if run.ended.is_some() { held } else { over };
            if cost < self.cost_min {
                continue;
            }
            if let Some(sizes) = sizes.as_ref().filter(|sizes| sizes.is_outlier(run)) {
                findings.push(skew(phase.kind, run, sizes, cost, held));
            } else if is_timed && run.active >= expected.saturating_mul(OUTLIER_MEDIANS) {
                findings.push(straggler(phase.kind, run, usual, cost, held));
            }
        }
    }

    /// Finds the keys that explain skewed reduces which have finished.
    fn hot_keys(&self, findings: &mut Vec<Finding>) {
        let Some(reduces) = &self.reduces else { return };
        let total = sum(reduces.finished().map(|run| run.records));
        for (key, records) in self.detail.counters.hot_keys() {
            let mut large = reduces.finished().filter(|run| run.records >= records);
            let (Some(run), None) = (large.next(), large.next()) else {
                continue;
            };
            let task = run.attempt.attempt.task;
            let skew = findings.iter().find(|known| {
                known.code == FindingCode::Skew && known.about.contains(&task.to_string())
            });
            let share = percent(records, run.records);
            let Some(skew) = skew.filter(|_| share >= HOT_KEY_PERCENT) else {
                continue;
            };
            findings.push(Finding {
                code: FindingCode::HotKey,
                text: format!(
                    "{task} has the key {key}: {share} % of its records, {} % of all",
                    percent(records, total)
                ),
                about: vec![task.to_string()],
                figures: figures(&[
                    ("key_records", records),
                    ("task_records", run.records),
                    ("total_records", total),
                ]),
                remedy: Some(
                    "spread the key over several, and join their results in a second job, or leave it out"
                        .to_owned(),
                ),
                cost_micros: skew.cost_micros,
            });
        }
    }

    /// Compares the time per byte on each worker with that on the others.
    fn slow_workers(&self, phase: &Phase<'_>, findings: &mut Vec<Finding>) {
        let finished = || phase.finished();
        let is_sized = finished().all(|run| run.bytes > 0);
        // Picoseconds per byte, so that integers suffice.
        let pace = |run: &Run<'_>| {
            let picos = u128::from(run.active) * 1_000_000;
            u64::try_from(if is_sized {
                picos / u128::from(run.bytes)
            } else {
                picos
            })
            .unwrap_or(u64::MAX)
        };
        let mut of_worker: BTreeMap<WorkerId, Vec<&Run<'_>>> = BTreeMap::new();
        finished().for_each(|run| of_worker.entry(run.attempt.worker).or_default().push(run));
        let of_all = median(finished().map(pace).collect());
        for (worker, own) in of_worker {
            let paced = median(own.iter().map(|run| pace(run)).collect());
            // Of many workers only the few slow ones are compared with all others.
            let is_one_of_many = own.len() * 4 < phase.runs.len();
            if own.len() < TASKS_PER_WORKER_MIN
                || (is_one_of_many && paced < of_all.saturating_add(of_all / 2))
            {
                continue;
            }
            let others: Vec<u64> = finished()
                .filter(|run| run.attempt.worker != worker)
                .map(pace)
                .collect();
            if others.len() < TASKS_PER_WORKER_MIN {
                continue;
            }
            let percent = percent(median(others), paced);
            let cost =
                sum(own.iter().map(|run| run.active)) / 100 * 100_u64.saturating_sub(percent);
            if percent <= SLOW_SPEED_PERCENT && cost >= self.cost_min {
                findings.push(slow_worker(phase.kind, &own, percent, cost));
            }
        }
    }

    /// Finds workers on which at least half of the attempts failed, while their tasks succeeded on other workers
    /// where attempts fail less than half as often.
    fn failing_workers(&self, findings: &mut Vec<Finding>) {
        let mut succeeded_on: BTreeMap<TaskId, WorkerId> = BTreeMap::new();
        let mut ends: BTreeMap<WorkerId, Ends<'_>> = BTreeMap::new();
        for attempt in &self.detail.attempts {
            if attempt.has_succeeded() {
                succeeded_on.insert(attempt.attempt.task, attempt.worker);
                ends.entry(attempt.worker).or_default().succeeded += 1;
            } else if attempt.has_failed() {
                ends.entry(attempt.worker).or_default().failed.push(attempt);
            }
        }
        let all_failed: usize = ends.values().map(|ends| ends.failed.len()).sum();
        let all_succeeded: usize = ends.values().map(|ends| ends.succeeded).sum();
        for (worker, own) in &ends {
            let is_elsewhere = |attempt: &&&AttemptSummary| {
                succeeded_on
                    .get(&attempt.attempt.task)
                    .is_some_and(|other| other != worker)
            };
            let blamed: Vec<&AttemptSummary> =
                own.failed.iter().filter(is_elsewhere).copied().collect();
            let tasks: BTreeSet<TaskId> =
                blamed.iter().map(|attempt| attempt.attempt.task).collect();
            let failed_percent = percent_of_failures(own.failed.len(), own.succeeded);
            let failed = all_failed - own.failed.len();
            let others_percent = percent_of_failures(failed, all_succeeded - own.succeeded);
            let Some(last) = blamed.iter().max_by_key(|attempt| attempt.ended_micros()) else {
                continue;
            };
            if tasks.len() < FAILED_TASKS_MIN
                || failed_percent < 50
                || others_percent * 2 > failed_percent
            {
                continue;
            }
            let cost = sum(blamed
                .iter()
                .map(|attempt| self.times.between(attempt, 0, u64::MAX)));
            findings.push(failing_worker(last, blamed.len(), tasks.len(), cost));
        }
    }

    fn preempted(&self) -> Option<Finding> {
        let attempts = &self.detail.attempts;
        let held = sum(attempts
            .iter()
            .map(|one| self.times.end(one).saturating_sub(one.launched_micros())));
        let ran = sum(attempts
            .iter()
            .map(|one| self.times.between(one, 0, u64::MAX)));
        let suspended = held.saturating_sub(ran);
        let requests = &self.detail.preemptions;
        let lost = sum(requests.iter().map(|one| one.work_lost_millis)).saturating_mul(1_000);
        let cost = suspended.saturating_add(lost);
        if cost < self.cost_min || percent(cost, held) < PREEMPTED_PERCENT {
            return None;
        }
        let mut took: BTreeMap<JobId, u64> = BTreeMap::new();
        requests
            .iter()
            .filter_map(|one| one.beneficiary)
            .for_each(|job| *took.entry(job).or_default() += 1);
        let count = requests.len() as u64;
        let most = took.iter().max_by_key(|(_, count)| **count);
        let whom = match most {
            Some((job, all)) if *all == count => format!(" for {job}"),
            Some((job, _)) => format!(", mostly for {job}"),
            None => String::new(),
        };
        let job = self.detail.summary.job;
        let times = if count == 1 {
            "once".to_owned()
        } else {
            format!("{count} times")
        };
        let effect = match (suspended, lost) {
            (_, 0) => format!("its tasks were suspended for {}", time(suspended)),
            (0, _) => format!("its tasks lost {} of work", time(lost)),
            _ => format!(
                "its tasks were suspended for {} and lost {} of work",
                time(suspended),
                time(lost)
            ),
        };
        let is_open = self.detail.summary.ended_millis.is_none();
        Some(Finding {
            code: FindingCode::Preempted,
            text: format!("{job} was preempted {times}{whom}: {effect}"),
            about: most.iter().map(|(job, _)| job.to_string()).collect(),
            figures: figures(&[
                ("preemptions", count),
                ("suspended_millis", suspended / 1_000),
                ("work_lost_millis", lost / 1_000),
            ]),
            remedy: is_open.then(|| {
                format!(
                    "if it should come first, raise its priority: nap job set {job} --priority N"
                )
            }),
            cost_micros: cost,
        })
    }

    fn small_files(&self) -> Option<Finding> {
        let timed = self.maps.runs.iter().filter_map(|run| {
            let started = run.attempt.started_micros()?;
            let ended = run.ended?;
            Some((
                started.saturating_sub(run.attempt.launched_micros()),
                ended.saturating_sub(started),
                run,
            ))
        });
        let mut starting = 0_u64;
        let mut working = 0_u64;
        let mut sizes = Vec::new();
        for (before, after, run) in timed {
            starting = sum([starting, before]);
            working = sum([working, after]);
            sizes.push(run.bytes);
        }
        let count = sizes.len();
        let usual = median(sizes);
        let is_found = count >= SMALL_MAPS_MIN
            && usual <= SMALL_MAP_BYTES_MAX
            && starting >= working
            && starting >= self.cost_min;
        is_found.then(|| Finding {
            code: FindingCode::SmallFiles,
            text: format!(
                "{count} maps read {} each (median); starting them took {}, their work {}",
                ByteSize::new(usual).rounded(),
                time(starting),
                time(working)
            ),
            about: Vec::new(),
            figures: figures(&[
                ("maps", count as u64),
                ("median_bytes", usual),
                ("starting_millis", starting / 1_000),
                ("working_millis", working / 1_000),
            ]),
            remedy: Some("make splits larger (--split-size), or join the files".to_owned()),
            cost_micros: starting,
        })
    }

    /// Judged once half of the reduces have finished: before that, all that reduces do is wait.
    fn waiting_for_maps(&self) -> Option<Finding> {
        let maps_end = self.maps_end?;
        let reduces = self.reduces.as_ref()?;
        let until = |until| {
            sum(reduces
                .finished()
                .map(|run| self.times.between(run.attempt, 0, until)))
        };
        let waited = until(maps_end);
        let active = until(u64::MAX);
        let count = reduces.finished().count();
        let share = percent(waited, active);
        let is_found = count * 2 >= reduces.tasks
            && share >= WAITING_PERCENT
            && waited >= WAITING_MICROS_MIN.max(self.cost_min);
        is_found.then(|| Finding {
            code: FindingCode::WaitingForMaps,
            text: format!(
                "{count} reduces held their slots for {} while they waited for maps, {share} % of their time",
                time(waited)
            ),
            about: Vec::new(),
            figures: figures(&[
                ("reduces", count as u64),
                ("waited_millis", waited / 1_000),
                ("active_millis", active / 1_000),
            ]),
            remedy: Some("start the reduces later: --conf slowstart=1".to_owned()),
            cost_micros: waited,
        })
    }

    fn spills(&self) -> Option<Finding> {
        let of = |counter| self.detail.counters.of(counter);
        let spilled = of(Counter::SpilledRecords);
        let records = of(Counter::MapOutputRecords);
        let each = of(Counter::MapOutputBytes) / records.max(1);
        let again = spilled.saturating_sub(records);
        if percent(spilled, records) < SPILLED_PERCENT
            || again.saturating_mul(each) < SPILLED_BYTES_MIN
        {
            return None;
        }
        let memory = self
            .detail
            .settings
            .as_ref()
            .map(|settings| settings.task_memory);
        let now = memory
            .map(|bytes| format!(" (now {})", ByteSize::new(bytes)))
            .unwrap_or_default();
        Some(Finding {
            code: FindingCode::Spills,
            text: format!(
                "sorting and merging wrote a record of map output {} times to disk",
                times(spilled, records)
            ),
            about: Vec::new(),
            figures: figures(&[
                ("spilled_records", spilled),
                ("map_output_records", records),
            ]),
            remedy: Some(format!(
                "raise --task-memory{now}, or combine on the map side"
            )),
            cost_micros: 0,
        })
    }
}

/// Input of the tasks of a phase: records of finished reduces, else bytes.
struct Sizes {
    in_records: bool,
    /// In ascending order.
    sizes: Vec<u64>,
    total: u64,
}

impl Sizes {
    /// `None` while too few are known.
    fn of(phase: &Phase<'_>) -> Option<Sizes> {
        let sized = || {
            phase
                .runs
                .iter()
                .filter(|run| run.attempt.figures.is_some() || run.bytes > 0)
        };
        let count = sized().count();
        if count < 2 || count * 2 < phase.tasks {
            return None;
        }
        let in_records = phase.kind == TaskKind::Reduce
            && phase.runs.iter().all(|run| run.ended.is_some())
            && sized().any(|run| run.records > 0);
        let mut sizes = Sizes {
            in_records,
            sizes: Vec::new(),
            total: 0,
        };
        let mut all: Vec<u64> = phase.runs.iter().map(|run| sizes.size(run)).collect();
        all.sort_unstable();
        sizes.total = sum(all.iter().copied());
        sizes.sizes = all;
        Some(sizes)
    }

    /// Returns the median of the other tasks: with few tasks, the one that stands out would shift a median of all.
    fn usual(&self, run: &Run<'_>) -> u64 {
        median_without(&self.sizes, self.size(run)).unwrap_or(0)
    }

    fn size(&self, run: &Run<'_>) -> u64 {
        if self.in_records {
            run.records
        } else {
            run.bytes
        }
    }

    /// Returns the time to expect of a task: more than the median's if it has more input.
    fn expected(&self, run: &Run<'_>, usual: u64) -> u64 {
        let percent = percent(self.size(run), self.usual(run)).max(100);
        usual.saturating_mul(percent) / 100
    }

    fn is_outlier(&self, run: &Run<'_>) -> bool {
        self.size(run) >= self.usual(run).max(1).saturating_mul(OUTLIER_MEDIANS)
    }
}

/// Returns the runs of the begun tasks; `totals` are the bytes that running attempts have to read.
fn runs<'a>(
    detail: &'a JobDetail,
    totals: &BTreeMap<AttemptId, u64>,
    kind: TaskKind,
    active: impl Fn(&AttemptSummary) -> u64,
) -> Vec<Run<'a>> {
    let is_open = detail.summary.ended_millis.is_none();
    let mut of_task: BTreeMap<u32, Run<'a>> = BTreeMap::new();
    for attempt in detail
        .attempts
        .iter()
        .filter(|one| one.attempt.task.kind == kind)
    {
        let is_done = attempt.has_succeeded();
        let is_running = is_open && attempt.ended_micros().is_none();
        let known = of_task.contains_key(&attempt.attempt.task.index);
        if !is_done && (!is_running || known) {
            continue;
        }
        let moved = attempt.figures.unwrap_or(AttemptFigures {
            input_bytes: totals.get(&attempt.attempt).copied().unwrap_or(0),
            ..AttemptFigures::default()
        });
        let run = Run {
            attempt,
            active: active(attempt),
            ended: attempt.ended_micros().filter(|_| is_done),
            records: moved.input_records,
            bytes: moved.input_bytes,
        };
        of_task.insert(attempt.attempt.task.index, run);
    }
    of_task.into_values().collect()
}

fn skew(kind: TaskKind, run: &Run<'_>, sizes: &Sizes, cost: u64, held: u64) -> Finding {
    let task = run.attempt.attempt.task;
    let size = sizes.size(run);
    let (what, of_all) = if sizes.in_records {
        (String::new(), "records")
    } else {
        (format!("{}, ", ByteSize::new(size).rounded()), "input")
    };
    let verb = if run.ended.is_some() { "read" } else { "reads" };
    let usual = sizes.usual(run);
    let much = match usual {
        0 => "while the median of the others is nothing".to_owned(),
        median => format!("{} times the median of the others", times(size, median)),
    };
    let unit = |records, bytes| if sizes.in_records { records } else { bytes };
    Finding {
        code: FindingCode::Skew,
        text: format!(
            "{task} {verb} {what}{} % of all {of_all}, {much}, and {}",
            percent(size, sizes.total),
            consequence(run, cost, held)
        ),
        about: vec![task.to_string()],
        figures: figures(&[
            (unit("records", "bytes"), size),
            (unit("median_records", "median_bytes"), usual),
            (unit("total_records", "total_bytes"), sizes.total),
            ("held_up_millis", held / 1_000),
        ]),
        remedy: Some(match kind {
            TaskKind::Map => {
                "a file that cannot be split is one map: store it in smaller files".to_owned()
            }
            TaskKind::Reduce => {
                "combine on the map side, or partition by more of the key".to_owned()
            }
        }),
        cost_micros: cost,
    }
}

/// The delay that an outlier caused.
fn consequence(run: &Run<'_>, over: u64, held: u64) -> String {
    match (run.ended, held) {
        (Some(_), _) => format!("held the job up by {}", time(held)),
        (None, 0) => format!(
            "has run {} longer than the median of the others",
            time(over)
        ),
        (None, _) => format!("has held the job up for {}", time(held)),
    }
}

fn straggler(kind: TaskKind, run: &Run<'_>, usual: u64, cost: u64, held: u64) -> Finding {
    let id = run.attempt.attempt;
    let job = id.task.job;
    let worker = run.attempt.worker;
    let verb = if run.ended.is_some() {
        "took"
    } else {
        "has run for"
    };
    let last = match (run.ended, held) {
        (None, 0) => "is still running".to_owned(),
        (None, _) => format!(
            "is the last of its {kind}s, which have waited {} for it",
            time(held)
        ),
        (Some(_), _) => format!(
            "was the last of its {kind}s, which waited {} for it",
            time(held)
        ),
    };
    let short = id.to_string();
    let short = short.trim_start_matches(&format!("{job}_"));
    Finding {
        code: FindingCode::Straggler,
        text: format!(
            "{id} {verb} {} on {worker} ({}), {} times the median of the others, and {last}",
            time(run.active),
            run.attempt.worker_name,
            times(run.active, usual)
        ),
        about: vec![id.to_string(), worker.to_string()],
        figures: figures(&[
            ("took_millis", run.active / 1_000),
            ("median_millis", usual / 1_000),
            ("over_millis", cost / 1_000),
            ("held_up_millis", held / 1_000),
        ]),
        remedy: Some(format!(
            "see what it does: nap job logs {job} {short} --stderr"
        )),
        cost_micros: cost,
    }
}

fn percent_of_failures(failed: usize, succeeded: usize) -> u64 {
    percent(failed as u64, (failed + succeeded) as u64)
}

fn failing_worker(last: &AttemptSummary, failures: usize, tasks: usize, cost: u64) -> Finding {
    let worker = last.worker;
    let id = last.attempt;
    let job = id.task.job;
    let reason = last.end.as_deref().unwrap_or("unknown reason");
    let short = id.to_string();
    let short = short.trim_start_matches(&format!("{job}_"));
    Finding {
        code: FindingCode::FailingWorker,
        text: format!(
            "{failures} attempts of {tasks} tasks failed on {worker} ({}), and the tasks succeeded on other workers; \
             last: {id}: {reason}",
            last.worker_name
        ),
        about: vec![worker.to_string(), id.to_string()],
        figures: figures(&[
            ("failures", failures as u64),
            ("tasks", tasks as u64),
            ("cost_millis", cost / 1_000),
        ]),
        remedy: Some(format!(
            "see why: nap job logs {job} {short} --stderr; take the worker out: nap worker drain {worker}"
        )),
        cost_micros: cost,
    }
}

fn slow_worker(kind: TaskKind, own: &[&Run<'_>], percent: u64, cost: u64) -> Finding {
    let worker = own[0].attempt.worker;
    let name = &own[0].attempt.worker_name;
    Finding {
        code: FindingCode::SlowWorker,
        text: format!(
            "{worker} ({name}) ran {} {kind}s at {percent} % of the speed of the other workers, which cost {}",
            own.len(),
            time(cost)
        ),
        about: vec![worker.to_string()],
        figures: figures(&[
            ("tasks", own.len() as u64),
            ("speed_percent", percent),
            ("cost_millis", cost / 1_000),
        ]),
        remedy: Some(format!(
            "look at its host, or take it out: nap worker drain {worker}"
        )),
        cost_micros: cost,
    }
}

fn figures(all: &[(&'static str, u64)]) -> BTreeMap<&'static str, u64> {
    all.iter().copied().collect()
}

/// Adds numbers of which damaged recordings may have any.
fn sum(all: impl IntoIterator<Item = u64>) -> u64 {
    all.into_iter().fold(0, u64::saturating_add)
}

/// Returns the median; 0 of nothing.
fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    quantile(&all, 50).unwrap_or(0)
}

fn percent(part: u64, whole: u64) -> u64 {
    let percent = (u128::from(part) * 100 + u128::from(whole) / 2) / u128::from(whole.max(1));
    u64::try_from(percent).unwrap_or(u64::MAX)
}

/// Formats a ratio with two digits: `3.4`, `34`.
fn times(larger: u64, smaller: u64) -> String {
    let ratio = larger as f64 / smaller.max(1) as f64;
    let digits = if ratio < 9.95 { 1 } else { 0 };
    format!("{ratio:.digits$}")
}

/// Formats microseconds: `9.6 s`, `2 min 5 s`, `3 h 7 min`.
fn time(micros: u64) -> String {
    let seconds = micros / SECOND;
    match seconds {
        0..60 => format!("{}.{} s", seconds, micros % SECOND / 100_000),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}
