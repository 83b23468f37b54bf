//! A ledger of launches, grants and ends, kept from the effects alone. It checks the guarantees that span
//! events: one commit per task, one end per job, a record before its order.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    AttemptId, Effect, Event, JobId, JobOutcome, JobSpec, MapOutput, Order, Record, Report, TaskId,
    TaskKind, WorkerId,
};
use rand::Rng;
use rand_pcg::Pcg32;

#[derive(Debug, Default)]
pub struct Ledger {
    specs: BTreeMap<JobId, JobSpec>,
    launched: BTreeMap<AttemptId, WorkerId>,
    over: Vec<AttemptId>,
    /// The attempt of each task that has the commit grant, or finished with it.
    granted: BTreeMap<TaskId, AttemptId>,
    done: BTreeMap<TaskId, AttemptId>,
    done_once: BTreeSet<TaskId>,
    /// The digests of map outputs.
    digests: BTreeMap<AttemptId, u64>,
    /// The map outputs that each reduce attempt may have read.
    readable: BTreeMap<AttemptId, BTreeSet<AttemptId>>,
    decided: BTreeMap<JobId, JobOutcome>,
    recorded: BTreeSet<JobId>,
    ended: BTreeSet<JobId>,
}

impl Ledger {
    pub fn open(&mut self, job: JobId, spec: &JobSpec) {
        self.specs.insert(job, spec.clone());
    }

    /// Returns whether an attempt at this task writes a part of the output.
    fn commits(&self, task: TaskId) -> bool {
        task.kind == TaskKind::Reduce || self.specs[&task.job].reduces == 0
    }

    /// Returns whether an attempt at this task writes a part of the output, and how many maps it reads.
    pub fn duties(&self, task: TaskId) -> (bool, usize) {
        let reads = if task.kind == TaskKind::Reduce {
            self.specs[&task.job].maps.len()
        } else {
            0
        };
        (self.commits(task), reads)
    }

    /// Returns some attempt that has ended.
    pub fn over(&self, rng: &mut Pcg32) -> Option<AttemptId> {
        if self.over.is_empty() {
            None
        } else {
            Some(self.over[rng.random_range(0..self.over.len())])
        }
    }

    /// Takes the digests from the reports about maps.
    pub fn note(&mut self, event: &Event) {
        if let Event::Reported {
            attempt,
            report:
                Report::Done {
                    output_digest: Some(digest),
                    ..
                },
            ..
        } = event
            && !self.over.contains(attempt)
        {
            self.digests.insert(*attempt, *digest);
        }
    }

    pub fn enter(&mut self, effect: &Effect) {
        match effect {
            Effect::Record(record) => self.record(record),
            Effect::Send { worker, order } => self.order(*worker, order),
            Effect::JobEnded { job, outcome } => {
                assert!(self.recorded.contains(job), "{job} ended without a record");
                assert!(self.ended.insert(*job), "{job} ended twice");
                assert_eq!(
                    self.decided.get(job),
                    Some(outcome),
                    "{job} ended otherwise than decided"
                );
            }
            Effect::WakeAt(_)
            | Effect::WorkerMayLeave { .. }
            | Effect::SubmitWanted { .. }
            | Effect::Warn { .. } => {}
        }
    }

    fn order(&mut self, worker: WorkerId, order: &Order) {
        match order {
            Order::Launch {
                attempt, inputs, ..
            } => {
                assert_eq!(
                    self.launched.get(attempt),
                    Some(&worker),
                    "{attempt}: launched without a record"
                );
                self.name_outputs(*attempt, inputs);
            }
            Order::MoreInputs { attempt, inputs } => self.name_outputs(*attempt, inputs),
            Order::Commit { attempt } => {
                assert_eq!(
                    self.granted.get(&attempt.task),
                    Some(attempt),
                    "{attempt}: commits without a record"
                );
            }
            _ => {}
        }
    }

    fn name_outputs(&mut self, reduce: AttemptId, inputs: &[MapOutput]) {
        let outputs = inputs.iter().map(|input| input.attempt);
        self.readable.entry(reduce).or_default().extend(outputs);
    }

    fn record(&mut self, record: &Record) {
        match record {
            Record::JobAccepted(_)
            | Record::WorkerDraining(_)
            | Record::WorkerUndrained(_)
            | Record::WorkerExcluded { .. }
            | Record::WorkerShort { .. }
            | Record::TaskIsolated { .. }
            | Record::WorkerLeft(_)
            | Record::PreemptRequested { .. }
            | Record::PreemptWithdrawn { .. }
            | Record::Suspended(_)
            | Record::Resumed(_)
            | Record::SlotTaken { .. }
            | Record::SlotUnused { .. }
            | Record::SuspendRefused { .. }
            | Record::Converted { .. }
            | Record::AttemptHeld { .. }
            | Record::AttemptReleased { .. }
            | Record::JobHeld { .. }
            | Record::JobChanged { .. }
            | Record::JobReleased { .. } => {}
            Record::AttemptLaunched {
                attempt, worker, ..
            } => {
                assert!(
                    !self.decided.contains_key(&attempt.task.job),
                    "{attempt}: launched for a job that is over"
                );
                assert!(
                    !self.done.contains_key(&attempt.task),
                    "{attempt}: launched for a task that is done"
                );
                assert!(
                    self.launched.insert(*attempt, *worker).is_none(),
                    "{attempt}: launched twice"
                );
            }
            Record::CommitGranted(attempt) => {
                let before = self.granted.insert(attempt.task, *attempt);
                assert_eq!(
                    before, None,
                    "{attempt}: granted while another has the right"
                );
            }
            Record::TaskDone(attempt) => self.task_done(*attempt),
            Record::OutputLost(task) => {
                assert!(
                    !self.commits(*task),
                    "{task}: what was committed is not lost"
                );
                assert!(
                    self.done.remove(task).is_some(),
                    "{task}: lost, but not done"
                );
            }
            Record::OutputMoved(attempt) => {
                assert_eq!(
                    self.done.get(&attempt.task),
                    Some(attempt),
                    "{attempt}: moved, but does not count"
                );
            }
            Record::AttemptEnded(attempt, _) | Record::Checkpointed(attempt) => {
                self.over.push(*attempt);
                if self.granted.get(&attempt.task) == Some(attempt) {
                    self.granted.remove(&attempt.task);
                }
            }
            Record::JobDecided(job, outcome) => {
                let is_killed = matches!(outcome, JobOutcome::Killed { .. });
                match self.decided.insert(*job, outcome.clone()) {
                    None => {}
                    // It waited for the end of its last attempts.
                    Some(JobOutcome::Succeeded) if is_killed => {}
                    Some(before) => panic!("{job}: decided twice, first {before:?}"),
                }
            }
            Record::JobEnded(job, outcome) => {
                assert!(self.recorded.insert(*job), "{job}: ended twice");
                if *outcome == JobOutcome::Succeeded {
                    self.check_complete(*job);
                }
            }
        }
    }

    fn task_done(&mut self, attempt: AttemptId) {
        let task = attempt.task;
        self.over.push(attempt);
        self.done_once.insert(task);
        if task.kind == TaskKind::Reduce {
            let maps = self.done_once.range(
                TaskId {
                    kind: TaskKind::Map,
                    index: 0,
                    ..task
                }..task,
            );
            let maps = maps.filter(|task| task.kind == TaskKind::Map).count();
            assert_eq!(
                maps,
                self.specs[&task.job].maps.len(),
                "{attempt}: done before its maps"
            );
        }
        let right = self.granted.get(&task).copied();
        assert_eq!(
            right,
            self.commits(task).then_some(attempt),
            "{attempt}: no right"
        );
        assert!(
            self.done.insert(task, attempt).is_none(),
            "{attempt}: done twice"
        );
    }

    fn check_complete(&self, job: JobId) {
        let spec = &self.specs[&job];
        let (kind, count) = match spec.reduces {
            0 => (TaskKind::Map, spec.maps.len() as u32),
            reduces => (TaskKind::Reduce, reduces),
        };
        for index in 0..count {
            let task = TaskId { job, kind, index };
            assert!(
                self.done.contains_key(&task),
                "{job} succeeded without {task}"
            );
        }
        self.check_same_records(job);
    }

    /// Checks that all reduces of a job have used the same records of each map.
    fn check_same_records(&self, job: JobId) {
        let mut used: BTreeMap<TaskId, u64> = BTreeMap::new();
        let (first, last) = AttemptId::range_of(job, TaskKind::Reduce);
        for (reduce, outputs) in self.readable.range(first..=last) {
            if self.done.get(&reduce.task) != Some(reduce) {
                continue;
            }
            for output in outputs {
                let digest = self.digests[output];
                let before = *used.entry(output.task).or_insert(digest);
                assert_eq!(
                    digest, before,
                    "{reduce} used other records of {} than another reduce",
                    output.task
                );
            }
        }
    }

    /// Checks that every accepted job and every launched attempt has ended.
    pub fn close(&self) {
        let missing: Vec<_> = self
            .specs
            .keys()
            .filter(|job| !self.ended.contains(job))
            .collect();
        assert!(missing.is_empty(), "{missing:?} never ended");
        let over: BTreeSet<_> = self.over.iter().collect();
        assert_eq!(over.len(), self.over.len(), "an attempt ended twice");
        assert_eq!(over.len(), self.launched.len(), "an attempt never ended");
    }
}
