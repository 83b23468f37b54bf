//! Copies of map outputs to storage that outlives their worker, which will be terminated externally: which
//! outputs, in which order, and where reduces read them afterwards. Outputs that are not copied in time are
//! lost with the worker and produced again.

use crate::effect::{Order, Record};
use crate::engine::Rules;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::states::JobState;

impl Rules {
    /// Orders a worker to copy the outputs that reduces still need, first those of the jobs with the fewest
    /// remaining reduces. Outputs that cannot be copied are given up.
    pub(super) fn move_outputs_of(&mut self, worker: WorkerId) {
        let mut holding: Vec<(u32, JobId, bool)> = Vec::new();
        for job in self
            .cluster
            .jobs
            .values()
            .filter(|job| job.state == JobState::Active)
        {
            if job.outputs_on(worker).next().is_some() {
                let reduces = &job.phases.reduce;
                holding.push((
                    reduces.total() - reduces.done,
                    job.id,
                    job.spec.outputs_move,
                ));
            }
        }
        holding.sort_unstable();
        for (_, job, moves) in holding {
            let indices: Vec<u32> = self.cluster.job(job).outputs_on(worker).collect();
            for index in indices {
                let task = TaskId {
                    job,
                    kind: TaskKind::Map,
                    index,
                };
                match self.cluster.task_mut(task).output.filter(|_| moves) {
                    Some((number, _)) => {
                        self.send(
                            worker,
                            Order::MoveOutput {
                                attempt: AttemptId { task, number },
                            },
                        );
                    }
                    None => self.take_back(task),
                }
            }
            self.cluster.refresh(job);
        }
    }

    /// Orders the copy of a map output that was finished on a worker about to be ended.
    pub(super) fn move_output_in_time(&mut self, id: AttemptId, worker: WorkerId) {
        let now = self.cluster.now;
        let saves_until = self
            .cluster
            .workers
            .get(&worker)
            .and_then(|worker| worker.saves_until());
        if self.cluster.job(id.task.job).spec.outputs_move
            && saves_until.is_some_and(|until| until > now)
        {
            self.send(worker, Order::MoveOutput { attempt: id });
        }
    }

    /// Records that an output was copied. Reduces that wait for inputs are notified; others may still read
    /// the original.
    pub(super) fn output_moved(&mut self, worker: WorkerId, id: AttemptId) {
        let job = self.cluster.active_job(id.task.job);
        let held = job
            .and_then(|job| job.task(id.task))
            .and_then(|task| task.output);
        if held != Some((id.number, worker)) || id.task.kind != TaskKind::Map {
            // It was produced again meanwhile, or is no longer needed.
            self.cluster.tally.stale_reports += 1;
            return;
        }
        self.cluster.job_mut(id.task.job).move_output(id, worker);
        self.record(Record::OutputMoved(id));
        self.feed_waiting_reduces(id.task);
    }
}
