//! Shortages of a worker: disk, or a limit of its host. A worker that reports a shortage gets no attempts until
//! it reports the end.
//!
//! An attempt that fails for lack of a resource shows only that its own task needs more than is there, so other
//! jobs are not affected: the task is not retried on that worker for a while, even if no other worker is left.
//! That ends with the job, or when the worker reports the end of a shortage. If the shortage follows the task to
//! every host, the task fails.

use crate::cluster::RetryPause;
use crate::effect::Record;
use crate::engine::Rules;
use crate::fault::DiskNeed;
use crate::ids::{AttemptId, WorkerId};
use crate::sorted::SortedSet;
use crate::states::WorkerState;
use crate::time::Span;

/// How often the pause before a retry on the same worker is doubled.
const DOUBLED_MAX: u32 = 2;
/// How many hosts a message names.
const HOSTS_NAMED: usize = 5;

impl Rules {
    /// Handles a worker's report that a shortage began or ended.
    pub(super) fn worker_short(&mut self, id: WorkerId, lacks: Option<&str>) {
        let known = self.cluster.workers.get_mut(&id);
        let Some(worker) = known.filter(|worker| worker.state() != WorkerState::Lost) else {
            self.cluster.tally.illegal_events += 1;
            self.warn(format!(
                "{id} is unknown and cannot have a shortage; ignored"
            ));
            return;
        };
        if !worker.health_mut().report_shortage(lacks) {
            return;
        }
        self.record(Record::WorkerShort {
            worker: id,
            lacks: lacks.map(str::to_owned),
        });
        self.use_changed(id);
        if lacks.is_none() {
            self.cluster.forget_shortage_failures(id);
        }
    }

    /// Handles a failure caused by a shortage of the host: the task runs on another host, and is not retried on
    /// this worker for a while. When there are as many such failures as the task has attempts, and no other host
    /// is left to try, the task is at fault.
    pub(super) fn excuse_for_host(
        &mut self,
        failed: AttemptId,
        worker: WorkerId,
        reason: &str,
        need: Option<DiskNeed>,
    ) {
        let task = failed.task;
        let Some(job) = self.cluster.active_job(task.job) else {
            return;
        };
        let failures_max = job.spec.attempts_max.max(2);
        let host = self.cluster.host_of(worker);
        let faults = &mut self.cluster.task_mut(task).faults;
        faults.add_shortage(host, need);
        let shortages = faults.shortages;
        let hosts = faults.short_on.clone();
        let disk_need = faults.disk_need;
        let could_try = |worker: WorkerId| !hosts.contains(&self.cluster.host_of(worker));
        let has_other_host = self.cluster.usable(task.kind).into_iter().any(could_try);
        if shortages >= failures_max && (hosts.len() >= failures_max as usize || !has_other_host) {
            let mut text = on_hosts(shortages, &hosts);
            text += &format!("; the last: {reason}");
            if let Some(need) = disk_need {
                text += &format!("; {}", need.in_words(task.kind));
            }
            return self.fail_task(task, text);
        }
        let doubled = shortages.saturating_sub(1).min(DOUBLED_MAX);
        let until = self.cluster.now + Span(self.settings.shortage_span.0.max(1) << doubled);
        self.cluster.avoid(task, worker);
        self.cluster.change_avoidance(task.job, |job| {
            let pause = RetryPause {
                until,
                reason: reason.to_owned(),
            };
            job.phases[task.kind].pause_retries(task.index, worker, pause);
        });
        self.cluster
            .worker_mut(worker)
            .health_mut()
            .suspect(failed, reason);
        let rule = self.settings.exclusion.unwrap_or_default();
        self.cluster.extend_streak(task, worker, rule, until, true);
    }

    /// Updates the state after a worker started or stopped taking attempts.
    pub(super) fn use_changed(&mut self, id: WorkerId) {
        self.cluster.list_worker(id);
        if !self.cluster.workers[&id].takes_attempts() {
            self.promise_no_slots_of(id);
        }
        self.cluster.workers_changed();
    }
}

/// Names the hosts on which a task failed for lack of a resource.
fn on_hosts(failures: u32, hosts: &SortedSet<String>) -> String {
    let named: Vec<&str> = hosts.iter().map(String::as_str).take(HOSTS_NAMED).collect();
    let more = hosts.len() - named.len();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!(
        "it failed {failures} times for lack of a resource of the host, on {}{more}",
        named.join(", ")
    )
}
