//! Map outputs that cannot be read any more, and reduces that wait for what replaces them.
//!
//! Owns who is blamed for a lost output, and who is told of the one that takes its place. It cannot go on for ever: each
//! time an output is reported lost counts as a failure of its map.

use crate::cluster::Attempt;
use crate::effect::{MapOutput, Order, Record};
use crate::engine::Engine;
use crate::ids::{AttemptId, TaskId, TaskKind};
use crate::states::{AttemptInput, AttemptState, JobState, TaskInput};

impl Engine {
    /// A reduce says that it cannot read some of its inputs. It goes on, and is fed what replaces them: what is there
    /// already at once, the rest when it is done again.
    pub(super) fn inputs_lost(&mut self, id: AttemptId, outputs: &[AttemptId], reason: &str) {
        let Some((_, state)) = self.step(id, AttemptInput::InputsLost) else { return };
        let job = id.task.job;
        if state == AttemptState::Killing || self.cluster.job(job).state != JobState::Active {
            return;
        }
        let attempt = self.cluster.attempt_mut(id).clone();
        let mut maps: Vec<TaskId> =
            outputs.iter().filter(|one| self.may_have_read(id, **one)).map(|one| one.task).collect();
        if maps.is_empty() {
            self.cluster.tally.illegal_reports += 1;
            self.warn(format!("{id} has lost inputs, but was given none of those it names; ignored"));
            return;
        }
        self.cluster.job_mut(job).awaiting_inputs.insert(id);
        self.blame_maps(&attempt, outputs, reason);
        self.cluster.refresh(job);
        if self.cluster.jobs.get(&job).is_none_or(|job| job.state != JobState::Active) {
            return;
        }
        maps.sort_unstable();
        maps.dedup();
        let job = self.cluster.job(job);
        let inputs: Vec<MapOutput> = maps.iter().filter_map(|map| job.map_output(map.index)).collect();
        if !inputs.is_empty() {
            self.send(attempt.worker, Order::MoreInputs { attempt: id, inputs });
        }
    }

    /// Whether an output can be one that this reduce was given.
    fn may_have_read(&self, reduce: AttemptId, output: AttemptId) -> bool {
        let of_this_job = reduce.task.kind == TaskKind::Reduce
            && output.task.kind == TaskKind::Map
            && output.task.job == reduce.task.job;
        let map = self.cluster.job(reduce.task.job).task(output.task).filter(|_| of_this_job);
        map.is_some_and(|map| (1..=map.launched).contains(&output.number))
    }

    /// Runs again the maps whose output a reduce could not read. True if it was given one that was lost.
    pub(super) fn blame_maps(&mut self, attempt: &Attempt, lost: &[AttemptId], reason: &str) -> bool {
        let mut excused = false;
        for output in lost {
            let Some(job) = self.cluster.jobs.get(&output.task.job) else { continue };
            if attempt.id.task.job != job.id || !self.may_have_read(attempt.id, *output) {
                continue;
            }
            let Some(map) = job.task(output.task) else { continue };
            // Lost to somebody else since this attempt began: no use in blaming the map again.
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

    /// The output of a finished map is gone: the map, and only it, must run again.
    pub(super) fn take_back(&mut self, id: TaskId) {
        let event = self.cluster.events;
        self.cluster.step_task(id, TaskInput::OutputLost);
        let task = self.cluster.task_mut(id);
        task.lost = true;
        task.lost_at = event;
        let held = task.output.take();
        let job = self.cluster.job_mut(id.job);
        job.maps_lost += 1;
        if let Some((_, worker)) = held
            && let Some(outputs) = job.outputs.get_mut(&worker)
        {
            outputs.remove(&id.index);
            if outputs.is_empty() {
                job.outputs.remove(&worker);
            }
        }
        self.record(Record::OutputLost(id));
    }

    /// Tells the reduces that wait for inputs of one more map output.
    pub(super) fn feed_waiting_reduces(&mut self, map: TaskId) {
        let job = self.cluster.job(map.job);
        let Some(output) = job.map_output(map.index) else { return };
        let waiting: Vec<AttemptId> = job.awaiting_inputs.iter().copied().collect();
        for attempt in waiting {
            let known = self.cluster.attempt_mut(attempt);
            if known.state != AttemptState::Killing {
                let worker = known.worker;
                self.send(worker, Order::MoreInputs { attempt, inputs: vec![output] });
            }
        }
    }
}
