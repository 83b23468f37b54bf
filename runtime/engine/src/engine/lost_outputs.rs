//! Lost map outputs, and reduces that wait for their replacements: when a report about an output is trusted,
//! which attempt is at fault, and which reduces receive the replacement.
//!
//! An output that is absent or damaged is lost. An unreachable one is lost when two hosts report it, or when
//! no other host can try; until then the reduce moves to another worker, after one retry. This terminates: a
//! host reports each worker once, and each lost output counts as a failure of its map. An output that was
//! copied to storage (`moves`) is lost when a reduce fails to read it from there.

use crate::cluster::{Attempt, Cluster, Job};
use crate::effect::{MapOutput, Order, Record};
use crate::engine::Rules;
use crate::fault::FaultPlace;
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::sorted::SortedSet;
use crate::states::{AttemptInput, AttemptState, JobState};

impl Rules {
    /// Handles a reduce's report that it cannot read some inputs. The reduce continues and receives the
    /// replacements: existing ones now, the others when they are ready.
    pub(super) fn inputs_lost(
        &mut self,
        id: AttemptId,
        outputs: &[AttemptId],
        place: FaultPlace,
        reason: &str,
    ) {
        let Some((_, state)) = self.step(id, AttemptInput::InputsLost) else {
            return;
        };
        let job = id.task.job;
        if state == AttemptState::Killing || self.cluster.job(job).state != JobState::Active {
            return;
        }
        let attempt = self.cluster.attempt_mut(id).clone();
        let mut maps: Vec<TaskId> = outputs
            .iter()
            .filter(|one| self.cluster.job(job).may_have_read(id, **one))
            .map(|one| one.task)
            .collect();
        if maps.is_empty() {
            self.cluster.tally.illegal_reports += 1;
            self.warn(format!(
                "{id} reported lost inputs that it does not have; ignored"
            ));
            return;
        }
        self.cluster.job_mut(job).awaiting_inputs.insert(id);
        // On the first failure it may have used the previous location.
        let looks_again = |output: &&AttemptId| {
            !attempt.missed.contains(&WorkerId::STORAGE)
                && self.cluster.has_outlived_its_worker(**output)
        };
        let (moved, others): (Vec<&AttemptId>, Vec<&AttemptId>) =
            outputs.iter().partition(looks_again);
        let others: Vec<AttemptId> = others.into_iter().copied().collect();
        let moved = (!moved.is_empty()).then_some(WorkerId::STORAGE);
        let (lost, mut doubted) = self.cluster.weigh(&attempt, &others, place);
        doubted.extend(moved);
        self.blame_maps(&attempt, &lost, reason);
        self.cluster.refresh(job);
        if self.cluster.active_job(job).is_none() {
            return;
        }
        let before = &mut self.cluster.attempt_mut(id).missed;
        let again = doubted
            .iter()
            .find(|holder| before.contains(holder))
            .copied();
        before.extend(doubted);
        if let Some(holder) = again {
            return self.send_elsewhere(&attempt, holder, reason);
        }
        maps.sort_unstable();
        maps.dedup();
        let job = self.cluster.job(job);
        let inputs: Vec<MapOutput> = maps
            .iter()
            .filter_map(|map| job.map_output(map.index))
            .collect();
        if !inputs.is_empty() {
            self.send(
                attempt.worker,
                Order::MoreInputs {
                    attempt: id,
                    inputs,
                },
            );
        }
    }

    /// Moves a reduce that alone cannot read from a worker to another worker, without counting a failure.
    fn send_elsewhere(&mut self, reduce: &Attempt, holder: WorkerId, reason: &str) {
        let reader = reduce.worker;
        self.kill(
            reduce.id,
            format!("{reader} cannot read from {holder}, but other workers can: {reason}"),
        );
        self.cluster.avoid(reduce.id.task, reader);
        let exclusion = self.settings.exclusion;
        self.cluster
            .hold_against(reader, reduce.id, reason, exclusion);
    }

    /// Reruns the maps whose output a reduce could not read. Returns whether it had been given a lost one.
    pub(super) fn blame_maps(
        &mut self,
        attempt: &Attempt,
        lost: &[AttemptId],
        reason: &str,
    ) -> bool {
        let mut excused = false;
        for output in lost {
            let Some(job) = self.cluster.jobs.get(&output.task.job) else {
                continue;
            };
            if !job.may_have_read(attempt.id, *output) {
                continue;
            }
            let Some(map) = job.task(output.task) else {
                continue;
            };
            // Another report lost it after this attempt began: do not count it against the map again.
            excused |= map.lost_at > attempt.launched_at;
            if job.state == JobState::Active
                && let Some((number, holder)) = map.output
                && number == output.number
            {
                excused = true;
                self.take_back(output.task);
                let why = format!("{} could not read its output: {reason}", attempt.id);
                self.count_failure(output.task, holder, why);
            }
        }
        excused
    }

    /// Makes a finished map pending again because its output is lost; no other task is affected.
    pub(super) fn take_back(&mut self, id: TaskId) {
        let event = self.cluster.events;
        self.cluster.job_mut(id.job).lose_output(id, event);
        self.record(Record::OutputLost(id));
    }

    /// Sends a new map output to the reduces that wait for inputs.
    pub(super) fn feed_waiting_reduces(&mut self, map: TaskId) {
        let job = self.cluster.job(map.job);
        let Some(output) = job.map_output(map.index) else {
            return;
        };
        let waiting: Vec<AttemptId> = job.awaiting_inputs.iter().copied().collect();
        for attempt in waiting {
            let known = self.cluster.attempt_mut(attempt);
            if known.state != AttemptState::Killing {
                let worker = known.worker;
                self.send(
                    worker,
                    Order::MoreInputs {
                        attempt,
                        inputs: vec![output],
                    },
                );
            }
        }
    }
}

impl Cluster {
    /// Splits the outputs that a reduce cannot read into those that are known to be lost, and workers that
    /// need a second report.
    pub(super) fn weigh(
        &mut self,
        reduce: &Attempt,
        outputs: &[AttemptId],
        place: FaultPlace,
    ) -> (Vec<AttemptId>, SortedSet<WorkerId>) {
        let mut lost = Vec::new();
        let mut doubted = SortedSet::new();
        let reader = self.host_of(reduce.worker);
        for output in outputs {
            let job = self.job(reduce.id.task.job);
            if !job.may_have_read(reduce.id, *output) {
                continue;
            }
            let held = job.map_output(output.task.index);
            let Some(holder) = held
                .filter(|held| held.attempt == *output)
                .map(|held| held.worker)
            else {
                lost.push(*output);
                continue;
            };
            if holder == WorkerId::STORAGE {
                lost.push(*output);
                continue;
            }
            if place == FaultPlace::Path && holder != reduce.worker {
                self.unread.insert(holder, reader.clone());
            }
            let believed =
                place != FaultPlace::Path || holder == reduce.worker || self.is_cut_off(holder);
            if believed {
                lost.push(*output);
            } else {
                doubted.insert(holder);
            }
        }
        (lost, doubted)
    }

    fn has_outlived_its_worker(&self, output: AttemptId) -> bool {
        let held = self
            .jobs
            .get(&output.task.job)
            .and_then(|job| job.map_output(output.task.index));
        held == Some(MapOutput {
            attempt: output,
            worker: WorkerId::STORAGE,
        })
    }

    /// Returns whether a worker's outputs cannot be reached: two hosts report it, or no other host is left
    /// that could try.
    fn is_cut_off(&self, holder: WorkerId) -> bool {
        if self.unread.readers(holder).count() >= 2 {
            return true;
        }
        let could_try = |worker: WorkerId| {
            let host = self.host_of(worker);
            self.unread.readers(holder).all(|reader| reader != host)
        };
        !self.usable(TaskKind::Reduce).into_iter().any(could_try)
    }

    /// Drops the read failures reported by the host of a worker or about that worker.
    pub(super) fn forget_unread(&mut self, worker: WorkerId) {
        if !self.unread.is_empty() {
            let host = self.host_of(worker);
            self.unread.remove_holder(worker);
            self.unread.remove_reader(&host);
        }
    }

    /// Drops the read failures of a host whose attempt has read all its inputs.
    pub(super) fn forget_unread_by(&mut self, worker: WorkerId) {
        if !self.unread.is_empty() {
            let host = self.host_of(worker);
            self.unread.remove_reader(&host);
        }
    }
}

impl Job {
    /// Returns whether an output may have been given to an attempt at one of its reduces.
    fn may_have_read(&self, reduce: AttemptId, output: AttemptId) -> bool {
        let is_reduce = reduce.task.job == self.id && reduce.task.kind == TaskKind::Reduce;
        let is_map = output.task.job == self.id && output.task.kind == TaskKind::Map;
        if !is_reduce || !is_map {
            return false;
        }
        let map = self.task(output.task);
        map.is_some_and(|map| (1..=map.launched).contains(&output.number))
    }
}
