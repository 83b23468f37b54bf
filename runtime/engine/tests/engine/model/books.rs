//! Guarantees of every run: an attempt is launched once, one attempt of a task commits and counts, a job ends
//! once and with all its parts, and a recovered engine repeats its orders.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{
    AttemptId, Effect, JobId, JobOutcome, JobSpec, Record, TaskId, TaskKind, WorkerId,
};

use crate::model::network::ToWorker;

#[derive(Debug, Default)]
pub struct Books {
    pub specs: BTreeMap<JobId, JobSpec>,
    /// The effects of each event, by its number.
    said: Vec<Vec<Effect>>,
    /// All messages to each worker, in order.
    pub told: BTreeMap<WorkerId, Vec<ToWorker>>,
    launched: BTreeSet<AttemptId>,
    /// The attempts with a commit grant, or those that had it when they finished.
    granted: BTreeMap<TaskId, AttemptId>,
    done: BTreeMap<TaskId, AttemptId>,
    pub ended: BTreeMap<JobId, JobOutcome>,
    /// Parts that were promoted to their final names.
    pub parts: BTreeSet<AttemptId>,
    /// Map outputs in storage that outlives their workers.
    pub moved: BTreeSet<AttemptId>,
}

impl Books {
    fn commits(&self, task: TaskId) -> bool {
        task.kind == TaskKind::Reduce || self.specs[&task.job].reduces == 0
    }

    /// Records the effects of event `number`; if they were recorded before, they must be equal. Returns
    /// whether the event is new.
    pub fn enter(&mut self, number: usize, effects: &[Effect]) -> bool {
        if let Some(before) = self.said.get(number) {
            assert_eq!(
                effects, before,
                "after a recovery event {number} has other effects"
            );
            return false;
        }
        assert_eq!(number, self.said.len(), "an event is missing");
        self.said.push(effects.to_vec());
        for effect in effects {
            match effect {
                Effect::Record(record) => self.record(record),
                Effect::Send { worker, order } => {
                    self.told
                        .entry(*worker)
                        .or_default()
                        .push(ToWorker::Obey(order.clone()));
                }
                Effect::WorkerMayLeave { worker } => {
                    self.told.entry(*worker).or_default().push(ToWorker::Leave);
                }
                Effect::JobEnded { job, outcome } => self.job_ended(*job, outcome),
                Effect::WakeAt(_) | Effect::SubmitWanted { .. } => {}
                Effect::Warn { message } => {
                    let expected =
                        message.contains("is excluded") || message.contains("cannot be killed");
                    assert!(expected, "{message}");
                }
            }
        }
        true
    }

    fn record(&mut self, record: &Record) {
        match record {
            Record::AttemptLaunched { attempt, .. } => {
                assert!(
                    !self.done.contains_key(&attempt.task),
                    "{attempt} is launched for a task that is done"
                );
                assert!(
                    self.launched.insert(*attempt),
                    "{attempt} is launched twice"
                );
            }
            Record::CommitGranted(attempt) => {
                let before = self.granted.insert(attempt.task, *attempt);
                assert_eq!(before, None, "{attempt} may commit while another one may");
            }
            Record::AttemptEnded(attempt, _)
                if self.granted.get(&attempt.task) == Some(attempt) =>
            {
                self.granted.remove(&attempt.task);
            }
            Record::TaskDone(attempt) => {
                assert!(
                    self.done.insert(attempt.task, *attempt).is_none(),
                    "{attempt}: counted twice"
                );
                let missing = self.commits(attempt.task) && !self.parts.contains(attempt);
                assert!(!missing, "{attempt} counts, but its part is not there");
            }
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
                assert!(
                    self.moved.contains(attempt),
                    "{attempt}: moved, but nobody has done so"
                );
            }
            _ => {}
        }
    }

    fn job_ended(&mut self, job: JobId, outcome: &JobOutcome) {
        assert!(
            self.ended.insert(job, outcome.clone()).is_none(),
            "{job} ended twice"
        );
        if *outcome != JobOutcome::Succeeded {
            return;
        }
        let spec = &self.specs[&job];
        let (kind, count) = match spec.reduces {
            0 => (TaskKind::Map, spec.maps.len() as u32),
            reduces => (TaskKind::Reduce, reduces),
        };
        for index in 0..count {
            let task = TaskId { job, kind, index };
            let by = self
                .done
                .get(&task)
                .unwrap_or_else(|| panic!("{task} is missing"));
            assert!(self.parts.contains(by), "{by}: its part is missing");
        }
    }

    /// Checks that the messages a worker has processed are the beginning of those sent to it, without gaps or
    /// duplicates.
    pub fn check_obeyed(&self, worker: WorkerId, obeyed: &[ToWorker]) {
        let told = self.told.get(&worker).map_or(&[][..], Vec::as_slice);
        assert!(
            told.starts_with(obeyed),
            "{worker} obeyed {obeyed:?}, but was told {told:?}"
        );
    }

    /// Returns the number of parts whose tasks another attempt completed.
    pub fn parts_that_do_not_count(&self) -> u64 {
        let counts = |part: &&AttemptId| self.done.get(&part.task) == Some(part);
        self.parts.iter().filter(|part| !counts(part)).count() as u64
    }

    /// Returns a hash of all effects.
    pub fn digest(&self) -> u64 {
        let text = format!("{:?}", self.said);
        text.bytes().fold(7, |sum: u64, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        })
    }
}
