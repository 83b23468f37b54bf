//! The state itself, and the indices over it.
//!
//! Owns the data and keeps its indices in step; `held_slots`, `preempted`, `rack_index`, `exclusion` and `gone` go on with
//! that. Does not own what is asked of it (`view`, `explain`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::by_kind::ByKind;
use crate::cluster::attempt::Attempt;
use crate::cluster::costs::MeasuredCosts;
use crate::cluster::free_workers::FreeWorkers;
use crate::cluster::id_map::IdMap;
use crate::cluster::job::{GivingOrder, Job, Listed};
use crate::cluster::lengths::KnownLengths;
use crate::cluster::racks::Racks;
use crate::cluster::tally::Tally;
use crate::cluster::task::Task;
use crate::cluster::worker::Worker;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::JobPart;
use crate::numbers::Numbers;
use crate::preemption::{PreemptRequest, Primitive};
use crate::primitive_choice::Judged;
use crate::states::{AttemptState, TaskInput};
use crate::time::Time;

/// What becomes due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deadline {
    /// The grace of the request for this attempt is over.
    Grace(AttemptId),
    /// The request for this attempt, which came too soon after another one, may be ordered.
    Earliest(AttemptId),
    /// This attempt, which is let finish, should have ended.
    Overdue(AttemptId),
    /// A reservation on this worker expires.
    Reservation(WorkerId),
    /// This worker, which was excluded, gets work again.
    Excluded(WorkerId),
    /// So does this one, where something was lacking.
    ShortageOver(WorkerId),
    /// This worker leaves, and what it runs has had its time to save its work.
    Drained(WorkerId),
}

/// The state behind the engine.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    pub now: Time,
    /// Slots of the workers that join from now on are of one kind.
    pub shares_slots: bool,
    /// How many events were handled, this one included.
    pub events: u64,
    pub jobs: IdMap<JobId, Job, true>,
    /// Jobs that are over: only their numbers, which are not used again.
    pub ended: Numbers,
    pub workers: IdMap<WorkerId, Worker, true>,
    /// Of these, those that are lost: something that ends still refers to them.
    pub lost: BTreeSet<WorkerId>,
    /// Where those are that are not lost; every job has the same.
    pub racks: Arc<Racks>,
    /// Workers that are no more, likewise only their numbers.
    pub gone: Numbers,
    /// Of these, those that left.
    pub left: Numbers,
    /// Workers that will leave when nothing there is needed.
    pub draining: BTreeSet<WorkerId>,
    /// Workers excluded because much failed there, and until when.
    pub excluded: BTreeSet<(Time, WorkerId)>,
    /// The worker that is kept for a task that runs alone.
    pub cleared: Option<WorkerId>,
    /// Tasks that run alone, since workers died while they ran.
    pub isolated: BTreeSet<TaskId>,
    /// Workers that could not be read from, and the host that said so.
    pub unread: BTreeSet<(WorkerId, String)>,
    pub attempts: IdMap<AttemptId, Attempt, false>,
    pub requests: BTreeMap<AttemptId, PreemptRequest>,
    pub deadlines: BTreeSet<(Time, Deadline)>,
    pub free: ByKind<FreeWorkers>,
    pub wanting: ByKind<BTreeSet<GivingOrder>>,
    /// How many jobs have a task of a kind that could be launched.
    pub launchable: ByKind<u32>,
    /// What taking slots cost so far.
    pub costs: ByKind<MeasuredCosts>,
    /// What chosen primitives were expected to cost, and did.
    pub judged: BTreeMap<Primitive, Judged>,
    /// What tasks of jobs took that ended well.
    pub lengths: KnownLengths,
    /// Suspended attempts that an operator wants to go on.
    pub recalled: BTreeSet<AttemptId>,
    /// Suspended attempts that wait for a slot, of active jobs, by worker.
    pub suspended_on: ByKind<BTreeMap<WorkerId, u32>>,
    /// Slots of the workers that take attempts, those of them that are free, and all that are held.
    pub slots: ByKind<u64>,
    pub free_slots: ByKind<u64>,
    pub held_slots: ByKind<u32>,
    /// Open requests by the kind of their victim.
    pub freeing: ByKind<u32>,
    /// What jobs that are about to be submitted are, where jobs have masters.
    pub parts: BTreeMap<JobId, JobPart>,
    /// Where slots are of one kind, the jobs whose reduces wait for maps none of which has a slot.
    pub waiting_for_themselves: BTreeSet<JobId>,
    /// Jobs the policy has to be told of.
    pub changed: Vec<JobId>,
    /// Jobs some of whose attempts of a kind may be stragglers.
    pub speculable: ByKind<BTreeSet<JobId>>,
    pub tally: Tally,
}

impl Cluster {
    /// The job of something live.
    pub fn job(&self, job: JobId) -> &Job {
        self.jobs.get(&job).expect("a job is kept until the last of its attempts is gone")
    }

    /// The job of something live.
    pub fn job_mut(&mut self, job: JobId) -> &mut Job {
        self.jobs.get_mut(&job).expect("a job is kept until the last of its attempts is gone")
    }

    /// A live attempt.
    pub fn attempt_mut(&mut self, attempt: AttemptId) -> &mut Attempt {
        self.attempts.get_mut(&attempt).expect("the caller looked it up, and attempts end in one place")
    }

    /// The task of something live.
    pub fn task_mut(&mut self, task: TaskId) -> &mut Task {
        self.job_mut(task.job).task_mut(task).expect("an attempt belongs to a task of its job")
    }

    /// A worker that was heard of.
    pub fn worker_mut(&mut self, worker: WorkerId) -> &mut Worker {
        self.workers.get_mut(&worker).expect("workers are never forgotten")
    }

    /// Changes a task by its table, and the sets that follow from it; the driver of the table is always an
    /// attempt or an output of that very task, so a missing row is a bug here.
    pub fn step_task(&mut self, id: TaskId, input: TaskInput) {
        let task = self.task_mut(id);
        task.state = task.state.on(input).expect("the engine keeps a task and its attempt in step");
        let job = self.job_mut(id.job);
        match input {
            TaskInput::Launched => job.remove_pending(id),
            TaskInput::DuplicateLaunched | TaskInput::DuplicateEnded => {}
            TaskInput::AttemptDone => job.phases[id.kind].done += 1,
            TaskInput::AttemptEnded => job.add_pending(id),
            TaskInput::OutputLost => {
                let phase = &mut job.phases[id.kind];
                phase.done -= 1;
                let task = &phase.tasks[id.index as usize];
                phase.worked.0 = phase.worked.0.saturating_sub(task.took.0);
                job.map_output_bytes = job.map_output_bytes.saturating_sub(task.output_bytes);
                job.add_pending(id);
            }
        }
    }

    /// An attempt at a task ended without doing it, and is forgotten already.
    pub fn step_task_without(&mut self, attempt: AttemptId) {
        let task = self.task_mut(attempt.task);
        task.committer = task.committer.filter(|number| *number != attempt.number);
        let last = task.live.is_empty();
        self.step_task(attempt.task, if last { TaskInput::AttemptEnded } else { TaskInput::DuplicateEnded });
    }

    /// Removes an attempt that ended, whatever it held: its slot, its place in every index.
    /// `before` is the state it ended in.
    pub fn forget_attempt(&mut self, id: AttemptId, before: AttemptState) -> Attempt {
        let attempt = self.attempts.remove(&id).expect("an attempt ends once");
        let kind = id.task.kind;
        let worker = self.worker_mut(attempt.worker);
        worker.forget(id);
        worker.masters -= u32::from(attempt.is_master);
        let job = self.job_mut(id.task.job);
        job.live.remove(&id);
        job.awaiting_inputs.remove(&id);
        if before == AttemptState::Suspended {
            self.list_suspended(id, attempt.worker, false);
        }
        self.task_mut(id.task).live.remove(id.number);
        if attempt.holds_slot {
            self.vacate(attempt.worker, kind, id.task.job);
        }
        attempt
    }

    /// Brings in line what follows from a job's state: whether it is among those that want slots or may have
    /// stragglers, and whether slots are still kept for it. To be called after every change of a job.
    pub fn refresh(&mut self, id: JobId) {
        self.touch(id);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let key = job.giving_order();
        for kind in TaskKind::ALL {
            let launchable = job.eligible_count(kind) > 0;
            let listed = Listed {
                wanting: launchable || job.may_resume(kind),
                launchable,
                speculable: job.may_have_stragglers(kind),
            };
            let before = std::mem::replace(&mut job.listed[kind], listed);
            if listed.wanting && !before.wanting {
                self.wanting[kind].insert(key);
            } else if !listed.wanting && before.wanting {
                self.wanting[kind].remove(&key);
            }
            self.launchable[kind] =
                self.launchable[kind] + u32::from(listed.launchable) - u32::from(before.launchable);
            if listed.speculable && !before.speculable {
                self.speculable[kind].insert(id);
            } else if !listed.speculable && before.speculable {
                self.speculable[kind].remove(&id);
            }
        }
        // A job may have a slot kept for it on every worker: they are not gone through while it can use each
        // of them.
        let uses_any = |kind| job.eligible_count(kind) > 0 && job.phases[kind].avoided.is_empty();
        if job.reserved_on.is_empty()
            || TaskKind::ALL.into_iter().all(|kind| job.promised[kind] == 0 || uses_any(kind))
        {
            return;
        }
        for worker in job.reserved_on.clone() {
            self.drop_reservations(worker, |cluster, kept| {
                kept.job == id && !cluster.job(id).wants_on(kept.kind, worker)
            });
        }
    }

    /// Takes a job out of every order that it stands in by what it asked for. Whoever does that enters it
    /// again, and refreshes it.
    pub fn take_out(&mut self, id: JobId) -> Option<Job> {
        let mut job = self.jobs.remove(&id)?;
        let place = job.giving_order();
        for kind in TaskKind::ALL {
            if std::mem::take(&mut job.listed[kind].wanting) {
                self.wanting[kind].remove(&place);
            }
        }
        Some(job)
    }

    /// The policy has to be told of this job.
    pub fn touch(&mut self, id: JobId) {
        let told = self.jobs.get_mut(&id).map(|job| std::mem::replace(&mut job.changed, true));
        if told != Some(true) {
            self.changed.push(id);
        }
    }

    /// Enters a worker that came up among those with free slots, or takes one that is lost out.
    pub fn list_worker(&mut self, worker: WorkerId) {
        for kind in TaskKind::ALL {
            let known = self.worker_mut(worker);
            let free = known.free(kind);
            let (takes, slots) = (known.takes_attempts(), known.slots[kind]);
            let before = std::mem::replace(&mut known.listed[kind], takes);
            if takes && free > 0 {
                self.free[kind].insert((Reverse(free), worker));
            } else {
                self.free[kind].remove(&(Reverse(free), worker));
            }
            if takes && !before {
                self.slots[kind] += u64::from(slots);
                self.free_slots[kind] += u64::from(free);
            } else if !takes && before {
                self.slots[kind] -= u64::from(slots);
                self.free_slots[kind] -= u64::from(free);
            }
        }
    }

    /// Who speaks for a worker: its host, or itself where it has one of its own.
    pub fn host_of(&self, worker: WorkerId) -> String {
        match self.workers.get(&worker) {
            Some(known) if !known.host.is_empty() => known.host.clone(),
            _ => worker.to_string(),
        }
    }

    /// The workers that could run a task of a kind: what masters hold is theirs until their jobs end.
    pub fn usable(&self, kind: TaskKind) -> BTreeSet<WorkerId> {
        let usable = |(_, worker): &(WorkerId, &Worker)| {
            worker.takes_attempts() && worker.slots[kind] > worker.masters
        };
        self.workers.iter().filter(usable).map(|(id, _)| id).collect()
    }

    /// Finds anew which tasks are to be kept from which workers, when the workers that can be used
    /// are others.
    pub fn find_avoided(&mut self) {
        if self.jobs.values().all(|job| TaskKind::ALL.iter().all(|kind| job.phases[*kind].failed.is_empty()))
        {
            return;
        }
        let usable = ByKind::of(|kind| self.usable(kind));
        let mut changed = Vec::new();
        for id in self.jobs.keys() {
            let job = self.job_mut(id);
            for kind in TaskKind::ALL {
                if !job.phases[kind].failed.is_empty() {
                    job.phases[kind].find_avoided(&usable[kind]);
                    changed.push(job.id);
                }
            }
        }
        for job in changed {
            self.refresh(job);
        }
    }
}
