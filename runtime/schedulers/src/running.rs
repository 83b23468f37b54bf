//! Limits on running jobs, per queue (with its subtree) and per user. Jobs above a limit wait in order of
//! submission.

use napreduce_engine::{JobId, SortedMap, SortedSet, Time};

/// The subject of a limit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// A queue or pool, by index.
    Queue(usize),
    User(String),
}

/// A group and its maximum number of running jobs.
pub(crate) type Limit = (Group, u32);

/// The jobs subject to a limit.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningJobs {
    running: SortedMap<JobId, Vec<Limit>>,
    waiting: SortedMap<JobId, Waiting>,
    counts: SortedMap<Group, u32>,
    /// Waiting jobs, each in the line of one limit that is reached.
    lines: SortedMap<Group, SortedSet<(Time, JobId)>>,
    /// Jobs that ran before a restart and have not been reported yet.
    remembered: SortedSet<JobId>,
}

#[derive(Debug, Clone)]
struct Waiting {
    submitted: Time,
    limits: Vec<Limit>,
    line: Group,
}

impl RunningJobs {
    /// Adds a job, which waits if one of its limits is reached. Returns other jobs that may run now: after a
    /// restart the free capacity is known once the last running job has been reported.
    pub(crate) fn enter(&mut self, job: JobId, submitted: Time, limits: Vec<Limit>) -> Vec<JobId> {
        if self.running.contains_key(&job) {
            return Vec::new();
        }
        let ran_before = self.remembered.remove(&job);
        let restored = ran_before && self.remembered.is_empty();
        // The limits of a job that ran before the restart may have been removed from the configuration.
        if !limits.is_empty() {
            if ran_before {
                self.run(job, limits);
            } else {
                self.run_or_wait(job, submitted, limits);
            }
        }
        if restored { self.settle() } else { Vec::new() }
    }

    /// Runs a new job, unless a limit is reached or not all jobs that ran before a restart are known.
    fn run_or_wait(&mut self, job: JobId, submitted: Time, limits: Vec<Limit>) {
        let mut line = self.reached(&limits);
        if line.is_none() && !self.remembered.is_empty() {
            line = Some(limits[0].0.clone());
        }
        match line {
            Some(line) => self.wait(
                job,
                Waiting {
                    submitted,
                    limits,
                    line,
                },
            ),
            None => self.run(job, limits),
        }
    }

    /// Removes a finished job. Returns the jobs that may run now, in order of submission.
    pub(crate) fn leave(&mut self, job: JobId) -> Vec<JobId> {
        if let Some(gone) = self.waiting.remove(&job) {
            self.unline(job, &gone);
            return Vec::new();
        }
        let Some(limits) = self.running.remove(&job) else {
            return Vec::new();
        };
        for (group, _) in &limits {
            if let Some(count) = self.counts.get_mut(group) {
                *count -= 1;
            }
        }
        let mut admitted = Vec::new();
        while let Some(next) = self.first_with_room(&limits) {
            if self.try_again(next) {
                admitted.push(next);
            }
        }
        admitted
    }

    /// Re-examines all waiting jobs in order of submission.
    fn settle(&mut self) -> Vec<JobId> {
        let mut all: Vec<_> = self
            .waiting
            .iter()
            .map(|(job, waiting)| (waiting.submitted, *job))
            .collect();
        all.sort_unstable();
        let mut admitted = Vec::new();
        for (_, job) in all {
            if self.try_again(job) {
                admitted.push(job);
            }
        }
        admitted
    }

    /// Runs a waiting job if none of its limits is reached; otherwise it waits for one that is.
    fn try_again(&mut self, job: JobId) -> bool {
        let Some(waiting) = self.waiting.remove(&job) else {
            return false;
        };
        self.unline(job, &waiting);
        match self.reached(&waiting.limits) {
            Some(line) => {
                self.wait(job, Waiting { line, ..waiting });
                false
            }
            None => {
                self.run(job, waiting.limits);
                true
            }
        }
    }

    pub(crate) fn is_waiting(&self, job: JobId) -> bool {
        self.waiting.contains_key(&job)
    }

    /// Returns why a job waits; `called` names a queue.
    pub(crate) fn why_waiting(
        &self,
        job: JobId,
        called: impl Fn(usize) -> String,
    ) -> Option<String> {
        let jobs = |most| if most == 1 { "job" } else { "jobs" };
        let (group, most) = self.waits_for(job)?;
        Some(match group {
            Group::Queue(queue) => {
                format!("{} runs {most} {}, its limit", called(*queue), jobs(*most))
            }
            Group::User(user) => {
                format!(
                    "user {user} runs {most} {}, the limit per user",
                    jobs(*most)
                )
            }
        })
    }

    fn waits_for(&self, job: JobId) -> Option<&Limit> {
        let waiting = self.waiting.get(&job)?;
        waiting
            .limits
            .iter()
            .find(|(group, _)| *group == waiting.line)
    }

    /// Returns the running jobs that a limit counts.
    pub(crate) fn running(&self) -> Vec<JobId> {
        self.running.keys().copied().collect()
    }

    /// Restores the running jobs from a snapshot.
    pub(crate) fn restore(&mut self, running: Vec<JobId>) {
        self.remembered = running.into_iter().collect();
    }

    /// Returns the first limit that is reached.
    fn reached(&self, limits: &[Limit]) -> Option<Group> {
        limits
            .iter()
            .find(|(group, most)| self.count(group) >= *most)
            .map(|(group, _)| group.clone())
    }

    fn count(&self, group: &Group) -> u32 {
        self.counts.get(group).copied().unwrap_or_default()
    }

    /// Returns the oldest job that waits for one of these limits with capacity left.
    fn first_with_room(&self, limits: &[Limit]) -> Option<JobId> {
        let with_room = limits
            .iter()
            .filter(|(group, most)| self.count(group) < *most);
        let heads = with_room.filter_map(|(group, _)| self.lines.get(group)?.first());
        heads.min().map(|&(_, job)| job)
    }

    fn run(&mut self, job: JobId, limits: Vec<Limit>) {
        for (group, _) in &limits {
            *self.counts.get_or_default(group.clone()) += 1;
        }
        self.running.insert(job, limits);
    }

    fn wait(&mut self, job: JobId, waiting: Waiting) {
        self.lines
            .get_or_default(waiting.line.clone())
            .insert((waiting.submitted, job));
        self.waiting.insert(job, waiting);
    }

    fn unline(&mut self, job: JobId, waiting: &Waiting) {
        if let Some(line) = self.lines.get_mut(&waiting.line) {
            line.remove(&(waiting.submitted, job));
            if line.is_empty() {
                self.lines.remove(&waiting.line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    fn limits(queue: usize, user: u8) -> Vec<Limit> {
        vec![
            (Group::Queue(queue), 2),
            (Group::Queue(9), 3),
            (Group::User(format!("user{user}")), 2),
        ]
    }

    /// Reference implementation: scans all jobs and runs the oldest that fit.
    #[derive(Default)]
    struct Oracle {
        jobs: BTreeMap<JobId, (Vec<Limit>, bool)>,
    }

    impl Oracle {
        fn settle(&mut self) {
            let ids: Vec<JobId> = self.jobs.keys().copied().collect();
            for id in ids {
                let (wanted, runs) = self.jobs[&id].clone();
                let count = |group: &Group| {
                    let counted = |(limits, runs): &&(Vec<Limit>, bool)| {
                        *runs && limits.iter().any(|(other, _)| other == group)
                    };
                    self.jobs.values().filter(counted).count() as u32
                };
                if !runs && wanted.iter().all(|(group, most)| count(group) < *most) {
                    self.jobs.insert(id, (wanted, true));
                }
            }
        }

        fn waiting(&self) -> Vec<JobId> {
            self.jobs
                .iter()
                .filter(|(_, (_, runs))| !runs)
                .map(|(id, _)| *id)
                .collect()
        }
    }

    proptest! {
        #[test]
        fn oldest_waiting_job_runs_first_within_limits(
            steps in prop::collection::vec((0_usize..3, 0_u8..3, any::<prop::sample::Index>(), any::<bool>()), 1..120)
        ) {
            let mut jobs = RunningJobs::default();
            let mut oracle = Oracle::default();
            for (number, (queue, user, which, comes)) in steps.into_iter().enumerate() {
                if comes || oracle.jobs.is_empty() {
                    let id = JobId(number as u32);
                    jobs.enter(id, Time(number as u64), limits(queue, user));
                    oracle.jobs.insert(id, (limits(queue, user), false));
                } else {
                    let gone = *which.get(&oracle.jobs.keys().copied().collect::<Vec<_>>());
                    jobs.leave(gone);
                    oracle.jobs.remove(&gone);
                }
                oracle.settle();
                let waiting: Vec<JobId> = jobs.waiting.keys().copied().collect();
                prop_assert_eq!(waiting, oracle.waiting());
                // A restart preserves the running jobs, whatever order the limits would admit them in.
                let mut restored = RunningJobs::default();
                restored.restore(jobs.running());
                for (id, (limits, _)) in &oracle.jobs {
                    restored.enter(*id, Time(id.0.into()), limits.clone());
                }
                prop_assert_eq!(restored.running(), jobs.running());
            }
        }
    }

    #[test]
    fn waiting_job_runs_when_restart_removed_limit() {
        let mut jobs = RunningJobs::default();
        jobs.restore(vec![JobId(1)]);
        assert_eq!(
            jobs.enter(JobId(2), Time(2), vec![(Group::Queue(4), 1)]),
            []
        );
        assert!(jobs.is_waiting(JobId(2)));
        assert_eq!(jobs.enter(JobId(1), Time(1), Vec::new()), [JobId(2)]);
        assert_eq!(jobs.running(), [JobId(2)]);
    }

    #[test]
    fn waiting_job_reports_its_limit() {
        let mut jobs = RunningJobs::default();
        jobs.enter(JobId(1), Time(1), vec![(Group::Queue(4), 1)]);
        jobs.enter(
            JobId(2),
            Time(2),
            vec![(Group::User("ada".to_owned()), 3), (Group::Queue(4), 1)],
        );
        assert!(!jobs.is_waiting(JobId(1)) && jobs.is_waiting(JobId(2)));
        assert_eq!(jobs.waits_for(JobId(2)), Some(&(Group::Queue(4), 1)));
        assert_eq!(jobs.leave(JobId(1)), [JobId(2)]);
        assert_eq!(jobs.waits_for(JobId(2)), None);
    }
}
