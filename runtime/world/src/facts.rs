//! What the simulation itself knows of a run, for the oracles: which tasks had trouble, and who may commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use napreduce_engine::{AttemptId, JobId, TaskId};
use napreduce_protocol::lock;
use tokio::time::Instant;

/// A coordinator that syncs its journal at intervals has synced everything that is older than this.
const SYNCED_WITHIN: Duration = Duration::from_secs(3);

/// Returns whether a process still exists.
pub type Exists = Box<dyn Fn() -> bool + Send>;

/// The facts of a run, shared by all actors.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    shared: Arc<Mutex<SharedFacts>>,
}

#[derive(Default)]
struct SharedFacts {
    /// Number of processes of a task to which something happened.
    troubles: BTreeMap<TaskId, u32>,
    /// The last attempt that was told to commit.
    granted: BTreeMap<TaskId, (AttemptId, Exists)>,
    /// Attempts that an operator suspended.
    held: BTreeSet<AttemptId>,
    /// How many times each attempt was allowed to run again.
    releases: BTreeMap<AttemptId, u32>,
    /// Jobs that an operator paused, and since when no launch can be under way.
    paused: BTreeMap<JobId, Instant>,
    /// Jobs that an operator wanted to kill.
    killed: BTreeSet<JobId>,
    /// Jobs that an operator killed, by the coordinator's answer.
    kill_answered: BTreeSet<JobId>,
    /// Jobs whose outcome was decided, so that their output is settled.
    ending: BTreeSet<JobId>,
    /// Jobs whose success was decided.
    decided: BTreeSet<JobId>,
    /// Numbers of the planned jobs that succeeded.
    succeeded: BTreeSet<u32>,
    /// Numbers of the planned jobs that the coordinator may have forgotten.
    forgotten: BTreeSet<u32>,
    /// How many times workers' hosts lost their power.
    crashes: u32,
    /// Whether a host may be cut off, so that it carries out orders that are void.
    is_divided: bool,
    /// Attempts whose process was started.
    started: BTreeSet<AttemptId>,
    /// When the coordinator's host lost its power. The last entries of its journal were lost with it, unless it syncs
    /// each before it acts on it.
    forgot: Vec<Instant>,
}

impl std::fmt::Debug for SharedFacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedFacts")
            .field("troubles", &self.troubles)
            .finish_non_exhaustive()
    }
}

impl Facts {
    /// Notes that a host may be cut off from now on.
    pub fn divide(&self) {
        lock(&self.shared).is_divided = true;
    }

    /// Notes that the coordinator may have lost the last entries of its journal. What it had answered or ordered just
    /// before may be void.
    pub fn note_forgotten(&self) {
        let mut facts = lock(&self.shared);
        facts.forgot.push(Instant::now());
        facts.is_divided = true;
        facts.started.clear();
        facts.held.clear();
        facts.paused.clear();
        facts.kill_answered.clear();
    }

    /// Returns whether the coordinator may have forgotten what it answered at this time.
    pub fn may_be_forgotten(&self, answered: Instant) -> bool {
        let facts = lock(&self.shared);
        let mut forgot = facts.forgot.iter();
        forgot.any(|at| *at >= answered && at.duration_since(answered) <= SYNCED_WITHIN)
    }

    /// Notes that a process of this attempt was started; returns whether it is the first one.
    pub fn note_start(&self, attempt: AttemptId) -> bool {
        let mut facts = lock(&self.shared);
        let last = facts.forgot.last();
        if last.is_some_and(|at| at.elapsed() <= SYNCED_WITHIN) {
            // Its order may have been on its way when the coordinator forgot it.
            return !facts.started.contains(&attempt);
        }
        facts.started.insert(attempt)
    }

    /// Notes that a worker's host lost its power.
    pub fn note_crash(&self) {
        lock(&self.shared).crashes += 1;
    }

    /// Returns how many times workers' hosts lost their power.
    pub fn crashes(&self) -> u32 {
        lock(&self.shared).crashes
    }

    /// Notes that something happened to a process of this attempt.
    pub fn note_trouble(&self, attempt: AttemptId) {
        *lock(&self.shared).troubles.entry(attempt.task).or_default() += 1;
    }

    /// Returns the most processes of one task of a job to which something happened.
    pub fn most_troubles(&self, job: JobId) -> u32 {
        let facts = lock(&self.shared);
        let troubles = facts.troubles.iter();
        let of_job = troubles.filter(|(task, _)| task.job == job);
        of_job.map(|(_, count)| *count).max().unwrap_or_default()
    }

    /// Notes that an attempt was told to commit. Returns another attempt of the task that was told so earlier and still
    /// exists.
    pub fn note_grant(&self, attempt: AttemptId, exists: Exists) -> Option<AttemptId> {
        let mut facts = lock(&self.shared);
        let is_divided = facts.is_divided;
        match facts.granted.insert(attempt.task, (attempt, exists)) {
            Some((earlier, exists)) if !is_divided && earlier != attempt && exists() => {
                Some(earlier)
            }
            _ => None,
        }
    }

    /// Notes that an operator's suspend of this attempt was carried out, unless it was allowed to run again since there
    /// were so many `releases` of it.
    pub fn hold(&self, attempt: AttemptId, releases: u32) {
        if self.releases_of(attempt) == releases {
            lock(&self.shared).held.insert(attempt);
        }
    }

    /// Notes that this attempt may run again.
    pub fn release(&self, attempt: AttemptId) {
        let mut facts = lock(&self.shared);
        facts.held.remove(&attempt);
        *facts.releases.entry(attempt).or_default() += 1;
    }

    /// Returns how many times this attempt was allowed to run again.
    pub fn releases_of(&self, attempt: AttemptId) -> u32 {
        let facts = lock(&self.shared);
        facts.releases.get(&attempt).copied().unwrap_or_default()
    }

    /// Returns whether an operator's suspend of this attempt is in force.
    pub fn is_held(&self, attempt: AttemptId) -> bool {
        lock(&self.shared).held.contains(&attempt)
    }

    /// Notes that an operator paused a job. Launches that were ordered before it arrive until `from`.
    pub fn pause(&self, job: JobId, from: Instant) {
        lock(&self.shared).paused.insert(job, from);
    }

    /// Notes that a job and all its attempts may run again.
    pub fn resume(&self, job: JobId) {
        let mut facts = lock(&self.shared);
        facts.paused.remove(&job);
        facts.held.retain(|attempt| attempt.task.job != job);
    }

    /// Returns whether an operator's pause of this job is in force.
    pub fn is_paused(&self, job: JobId) -> bool {
        let facts = lock(&self.shared);
        !facts.is_divided
            && facts
                .paused
                .get(&job)
                .is_some_and(|from| *from <= Instant::now())
    }

    /// Returns whether an operator's pause of this job was answered and is in force.
    pub fn was_answered_as_paused(&self, job: JobId) -> bool {
        lock(&self.shared).paused.contains_key(&job)
    }

    /// Returns the attempt of this task that an operator's suspend holds.
    pub fn held_attempt_of(&self, task: TaskId) -> Option<AttemptId> {
        let facts = lock(&self.shared);
        let mut held = facts.held.iter();
        held.find(|attempt| attempt.task == task).copied()
    }

    /// Notes that the planned job of this number succeeded.
    pub fn note_success(&self, number: u32) {
        lock(&self.shared).succeeded.insert(number);
    }

    /// Returns whether the planned job of this number succeeded.
    pub fn has_succeeded(&self, number: u32) -> bool {
        lock(&self.shared).succeeded.contains(&number)
    }

    /// Notes that the coordinator may have forgotten the planned job of this number.
    pub fn note_forgotten_job(&self, number: u32) {
        lock(&self.shared).forgotten.insert(number);
    }

    /// Returns whether the coordinator may have forgotten the planned job of this number.
    pub fn is_job_forgotten(&self, number: u32) -> bool {
        lock(&self.shared).forgotten.contains(&number)
    }

    /// Returns whether the coordinator may have forgotten anything.
    pub fn has_forgotten(&self) -> bool {
        !lock(&self.shared).forgot.is_empty()
    }

    /// Notes that an operator wants to kill a job.
    pub fn note_killed(&self, job: JobId) {
        lock(&self.shared).killed.insert(job);
    }

    /// Notes that the outcome of a job was decided.
    pub fn note_ending(&self, job: JobId) {
        lock(&self.shared).ending.insert(job);
    }

    /// Returns whether the outcome of a job was decided.
    pub fn is_ending(&self, job: JobId) -> bool {
        lock(&self.shared).ending.contains(&job)
    }

    /// Notes that the success of a job was decided. A kill comes too late now.
    pub fn note_decided(&self, job: JobId) {
        lock(&self.shared).decided.insert(job);
    }

    /// Notes that the coordinator has answered that it kills a job.
    pub fn note_kill_answered(&self, job: JobId) {
        let mut facts = lock(&self.shared);
        if !facts.decided.contains(&job) {
            facts.kill_answered.insert(job);
        }
    }

    /// Returns whether the coordinator has answered that it kills this job.
    pub fn was_kill_answered(&self, job: JobId) -> bool {
        lock(&self.shared).kill_answered.contains(&job)
    }

    /// Returns whether an operator wanted to kill this job.
    pub fn is_killed(&self, job: JobId) -> bool {
        lock(&self.shared).killed.contains(&job)
    }
}
