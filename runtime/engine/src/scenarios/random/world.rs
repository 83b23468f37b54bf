//! A model of workers and their processes, driven by a seeded generator: slow, racing and failing, but
//! truthful. The engine's state is checked against it: no worker runs more processes than it has slots.
//! Orders and reports of one worker stay in order; workers are not synchronized with each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{AttemptId, FailureClass, FaultPlace, JobId, Order, Report, Slots, TaskKind};
use rand::Rng;
use rand_pcg::Pcg32;

/// The activity of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Starting,
    Working,
    /// Its work is done; it waits for a commit grant.
    Asking,
    Stopping,
    Stopped,
    Continuing,
    Saving,
    Dying,
}

#[derive(Debug)]
struct Process {
    doing: Doing,
    /// Whether its part must be committed.
    commits: bool,
    asked: bool,
    granted: bool,
    /// False while it is stopped.
    runs: bool,
    /// It is stopped inside a unit of work.
    is_at_work: bool,
    inputs: Vec<AttemptId>,
    /// Number of maps that it must have read before it can finish.
    maps: usize,
    /// Whether a map of its job writes other records each time.
    varies: bool,
}

/// A worker with its processes.
#[derive(Debug)]
pub struct Daemon {
    slots: Slots,
    /// Slots are shared by both kinds.
    shared: bool,
    /// Whether the engine receives true reports about it, so that its guarantees can be checked.
    trusted: bool,
    orders: VecDeque<(Order, bool, usize)>,
    reports: VecDeque<(AttemptId, Report)>,
    processes: BTreeMap<AttemptId, Process>,
}

impl Daemon {
    pub fn new(slots: Slots, shared: bool, trusted: bool) -> Daemon {
        Daemon {
            slots,
            shared,
            trusted,
            orders: VecDeque::new(),
            reports: VecDeque::new(),
            processes: BTreeMap::new(),
        }
    }

    /// Queues an order. For a launch: whether the attempt writes a part of the output, and how many maps it
    /// must have read before it can finish.
    pub fn receive(&mut self, order: Order, commits: bool, maps: usize) {
        self.orders.push_back((order, commits, maps));
    }

    /// Takes the next report to hand in, if any.
    pub fn next_report(&mut self) -> Option<(AttemptId, Report)> {
        self.reports.pop_front()
    }

    pub fn is_idle(&self) -> bool {
        let at_rest = |process: &Process| process.doing == Doing::Stopped;
        self.orders.is_empty() && self.reports.is_empty() && self.processes.values().all(at_rest)
    }

    /// Returns whether no process runs here and no launch is pending.
    pub fn is_empty(&self) -> bool {
        let launch = |(order, ..): &(Order, bool, usize)| matches!(order, Order::Launch { .. });
        self.processes.is_empty() && !self.orders.iter().any(launch)
    }

    /// Processes one queued order.
    pub fn obey(&mut self) {
        let Some((order, commits, maps)) = self.orders.pop_front() else {
            return;
        };
        let trusted = self.trusted;
        match order {
            Order::Launch {
                attempt, inputs, ..
            } => {
                let process = Process {
                    doing: Doing::Starting,
                    commits,
                    asked: false,
                    granted: false,
                    runs: true,
                    is_at_work: false,
                    inputs: inputs.iter().map(|input| input.attempt).collect(),
                    maps,
                    varies: varies(attempt.task.job),
                };
                assert!(
                    self.processes.insert(attempt, process).is_none(),
                    "{attempt} was launched twice"
                );
                self.check_slots(attempt);
            }
            Order::MoreInputs { attempt, inputs } => self.tell(attempt, |process| {
                process
                    .inputs
                    .extend(inputs.iter().map(|input| input.attempt))
            }),
            Order::Kill { attempt } => self.tell(attempt, |process| process.doing = Doing::Dying),
            Order::Commit { attempt } => self.tell(attempt, |process| process.granted = true),
            Order::Suspend { attempt } => self.tell(attempt, |process| {
                assert!(
                    !trusted || !process.granted,
                    "{attempt} is stopped while it commits"
                );
                process.doing = Doing::Stopping;
            }),
            Order::Resume { attempt } => {
                self.tell(attempt, |process| {
                    let stopped = process.doing == Doing::Stopped;
                    assert!(
                        !trusted || stopped,
                        "{attempt} is resumed before it was stopped"
                    );
                    process.doing = Doing::Continuing;
                    process.runs = true;
                });
                self.check_slots(attempt);
            }
            Order::Checkpoint { attempt } => {
                let trusted = self.trusted;
                self.tell(attempt, |process| {
                    let works = process.doing == Doing::Stopped && process.is_at_work;
                    assert!(!trusted || !works, "{attempt} would work without a slot");
                    process.doing = Doing::Saving;
                });
            }
            Order::MoveOutput { attempt } => self.reports.push_back((attempt, Report::OutputMoved)),
        }
    }

    /// Changes a process; ignores an order for an exited process, which crossed its last report.
    fn tell(&mut self, attempt: AttemptId, change: impl FnOnce(&mut Process)) {
        if let Some(process) = self.processes.get_mut(&attempt) {
            change(process);
        }
    }

    /// Checks the slot guarantee: processes that may be running never outnumber the slots.
    fn check_slots(&self, newest: AttemptId) {
        let kind = newest.task.kind;
        let all = self.processes.iter();
        let same = |attempt: &AttemptId| self.shared || attempt.task.kind == kind;
        let count = all
            .filter(|(attempt, process)| same(attempt) && process.runs)
            .count();
        let slots = match kind {
            _ if self.shared => self.slots.map.max(self.slots.reduce),
            TaskKind::Map => self.slots.map,
            TaskKind::Reduce => self.slots.reduce,
        };
        assert!(
            !self.trusted || count <= slots as usize,
            "{newest} is process {count} of kind {kind} in {slots} slots"
        );
    }

    /// Advances one process by one step; it fails occasionally if failures are allowed.
    pub fn step(&mut self, rng: &mut Pcg32, may_fail: bool) {
        if self.processes.is_empty() {
            return;
        }
        let chosen = rng.random_range(0..self.processes.len());
        let Some((&attempt, process)) = self.processes.iter_mut().nth(chosen) else {
            return;
        };
        let (next, report) = process.step(rng, may_fail);
        process.asked |= report == Some(Report::CommitRequested);
        process.runs &= next != Some(Doing::Stopped);
        process.is_at_work |= report == Some(Report::SuspendedAtWork);
        process.is_at_work &= report != Some(Report::Suspended);
        match next {
            Some(next) => process.doing = next,
            None => {
                self.processes.remove(&attempt);
            }
        }
        self.reports.extend(report.map(|report| (attempt, report)));
    }
}

/// Returns whether a map of a job writes other records each time: in a third of the jobs.
fn varies(job: JobId) -> bool {
    job.0.is_multiple_of(3)
}

impl Process {
    /// Returns its next activity (`None`: it has exited) and its report.
    fn step(&self, rng: &mut Pcg32, may_fail: bool) -> (Option<Doing>, Option<Report>) {
        let stays = (Some(self.doing), None);
        if may_fail && self.doing != Doing::Stopped && rng.random_bool(0.06) {
            return (None, Some(self.failure(rng)));
        }
        // It may finish before an order reaches it.
        let races = may_fail && rng.random_bool(0.2);
        let reads = self.maps > 0 && !self.inputs.is_empty();
        match self.doing {
            Doing::Working if may_fail && reads && rng.random_bool(0.1) => {
                let outputs = vec![self.inputs[rng.random_range(0..self.inputs.len())]];
                let place = if rng.random_bool(0.5) {
                    FaultPlace::Path
                } else {
                    FaultPlace::Peer
                };
                (
                    Some(Doing::Working),
                    Some(Report::InputsLost {
                        outputs,
                        place,
                        reason: "no route".to_owned(),
                    }),
                )
            }
            Doing::Starting => (Some(Doing::Working), Some(Report::Started)),
            Doing::Working if rng.random_bool(0.5) || !self.has_read_everything() => (
                Some(Doing::Working),
                Some(Report::Progressed {
                    bytes_done: 1,
                    bytes_total: 2,
                }),
            ),
            Doing::Working => self.finish(rng),
            Doing::Asking if self.granted => (None, Some(self.done(rng))),
            Doing::Asking | Doing::Stopped => stays,
            Doing::Stopping | Doing::Saving | Doing::Dying if races && !self.commits => {
                (None, Some(self.done(rng)))
            }
            Doing::Saving if self.granted => (None, Some(self.done(rng))),
            Doing::Stopping | Doing::Saving
                if races && !self.asked && self.has_read_everything() =>
            {
                (Some(self.doing), Some(Report::CommitRequested))
            }
            Doing::Stopping if may_fail && rng.random_bool(0.4) => {
                let going_on = if self.asked {
                    Doing::Asking
                } else {
                    Doing::Working
                };
                (
                    Some(going_on),
                    Some(Report::SuspendRefused {
                        reason: "no memory".to_owned(),
                    }),
                )
            }
            Doing::Stopping if rng.random_bool(0.3) => {
                (Some(Doing::Stopped), Some(Report::SuspendedAtWork))
            }
            Doing::Stopping => (Some(Doing::Stopped), Some(Report::Suspended)),
            Doing::Continuing if self.asked => (Some(Doing::Asking), Some(Report::Resumed)),
            Doing::Continuing => (Some(Doing::Working), Some(Report::Resumed)),
            Doing::Saving => (None, Some(Report::Checkpointed)),
            Doing::Dying => (None, Some(Report::Killed)),
        }
    }

    fn has_read_everything(&self) -> bool {
        let read: BTreeSet<u32> = self.inputs.iter().map(|input| input.task.index).collect();
        read.len() == self.maps
    }

    fn finish(&self, rng: &mut Pcg32) -> (Option<Doing>, Option<Report>) {
        if self.commits {
            (Some(Doing::Asking), Some(Report::CommitRequested))
        } else {
            (None, Some(self.done(rng)))
        }
    }

    fn done(&self, rng: &mut Pcg32) -> Report {
        let output_digest = if self.commits {
            None
        } else if self.varies {
            Some(rng.random_range(0..2))
        } else {
            Some(0)
        };
        Report::Done {
            output_bytes: 0,
            output_digest,
        }
    }

    fn failure(&self, rng: &mut Pcg32) -> Report {
        let class = match rng.random_range(0..40) {
            0 => FailureClass::Fatal,
            1..12 => FailureClass::Task,
            _ => FailureClass::Retryable,
        };
        let place = FaultPlace::ALL[rng.random_range(0..FaultPlace::ALL.len())];
        let lost_outputs = self
            .inputs
            .iter()
            .copied()
            .filter(|_| rng.random_bool(0.2))
            .collect();
        Report::Failed {
            class,
            place,
            reason: "it happened".to_owned(),
            lost_outputs,
            disk_need: None,
        }
    }
}
