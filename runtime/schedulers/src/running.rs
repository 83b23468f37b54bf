//! How many jobs may run at once: of a queue with all that is below it, and of a user. The others wait for
//! one of these to end, in the order of their submission.
//!
//! Owns who runs and who waits for which limit. Does not own what the limits are, nor what waiting means for
//! a policy.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{JobId, Time};

/// Something that a limit is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// A queue, or pool, by its number.
    Queue(usize),
    User(String),
}

/// A limit, and of what.
pub(crate) type Limit = (Group, u32);

/// The jobs that a limit counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningJobs {
    running: BTreeMap<JobId, Vec<Limit>>,
    waiting: BTreeMap<JobId, Waiting>,
    counts: BTreeMap<Group, u32>,
    /// Each that waits stands in the line of one limit that is reached.
    lines: BTreeMap<Group, BTreeSet<(Time, JobId)>>,
    /// Those that ran before a restart, until they are named again.
    remembered: BTreeSet<JobId>,
}

#[derive(Debug, Clone)]
struct Waiting {
    submitted: Time,
    limits: Vec<Limit>,
    line: Group,
}

impl RunningJobs {
    /// A job comes that these limits count, and waits if one of them is reached. Others that may run now:
    /// after a restart it is known what is left for them when the last of those that ran has been named.
    pub(crate) fn enter(&mut self, job: JobId, submitted: Time, limits: Vec<Limit>) -> Vec<JobId> {
        if self.running.contains_key(&job) {
            return Vec::new();
        }
        let ran = self.remembered.remove(&job);
        let is_over = ran && self.remembered.is_empty();
        // The limits of a job that ran may have been taken out of the configuration since.
        if limits.is_empty() {
        } else if ran {
            self.run(job, limits);
        } else {
            let any = (!self.remembered.is_empty()).then(|| limits[0].0.clone());
            match self.reached(&limits).or(any) {
                Some(line) => self.wait(job, Waiting { submitted, limits, line }),
                None => self.run(job, limits),
            }
        }
        if is_over { self.settle() } else { Vec::new() }
    }

    /// A job is over; those that may run now because of that, in the order of their submission.
    pub(crate) fn leave(&mut self, job: JobId) -> Vec<JobId> {
        if let Some(gone) = self.waiting.remove(&job) {
            self.unline(job, &gone);
            return Vec::new();
        }
        let Some(limits) = self.running.remove(&job) else { return Vec::new() };
        for (group, _) in &limits {
            if let Some(count) = self.counts.get_mut(group) {
                *count -= 1;
            }
        }
        let mut admitted = Vec::new();
        while let Some(next) = self.first_with_room(&limits) {
            admitted.extend(self.try_again(next).then_some(next));
        }
        admitted
    }

    /// Looks at all that wait, those submitted first before the others.
    fn settle(&mut self) -> Vec<JobId> {
        let mut all: Vec<_> = self.waiting.iter().map(|(job, waiting)| (waiting.submitted, *job)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, job)| job).filter(|&job| self.try_again(job)).collect()
    }

    /// One that waits runs if no limit keeps it, or waits for one that does.
    fn try_again(&mut self, job: JobId) -> bool {
        let Some(waiting) = self.waiting.remove(&job) else { return false };
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

    /// Why a job waits, if it does; `called` is what a queue is called.
    pub(crate) fn why_waiting(&self, job: JobId, called: impl Fn(usize) -> String) -> Option<String> {
        let jobs = |most| if most == 1 { "job" } else { "jobs" };
        let (group, most) = self.waits_for(job)?;
        Some(match group {
            Group::Queue(queue) => {
                format!("{} runs {most} {}, the most it may at once", called(*queue), jobs(*most))
            }
            Group::User(user) => {
                format!("user {user} has {most} {} running, the most one may at once", jobs(*most))
            }
        })
    }

    /// The limit for which a job waits.
    fn waits_for(&self, job: JobId) -> Option<&Limit> {
        let waiting = self.waiting.get(&job)?;
        waiting.limits.iter().find(|(group, _)| *group == waiting.line)
    }

    /// Those that run, of the jobs that a limit counts.
    pub(crate) fn running(&self) -> Vec<JobId> {
        self.running.keys().copied().collect()
    }

    /// Goes on from what another said to run.
    pub(crate) fn recall(&mut self, running: Vec<JobId>) {
        self.remembered = running.into_iter().collect();
    }

    /// The first limit that is reached.
    fn reached(&self, limits: &[Limit]) -> Option<Group> {
        limits.iter().find(|(group, most)| self.count(group) >= *most).map(|(group, _)| group.clone())
    }

    fn count(&self, group: &Group) -> u32 {
        self.counts.get(group).copied().unwrap_or_default()
    }

    /// The job that waits longest for one of these limits which is not reached any more.
    fn first_with_room(&self, limits: &[Limit]) -> Option<JobId> {
        let with_room = limits.iter().filter(|(group, most)| self.count(group) < *most);
        let heads = with_room.filter_map(|(group, _)| self.lines.get(group)?.first());
        heads.min().map(|&(_, job)| job)
    }

    fn run(&mut self, job: JobId, limits: Vec<Limit>) {
        for (group, _) in &limits {
            *self.counts.entry(group.clone()).or_default() += 1;
        }
        self.running.insert(job, limits);
    }

    fn wait(&mut self, job: JobId, waiting: Waiting) {
        self.lines.entry(waiting.line.clone()).or_default().insert((waiting.submitted, job));
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
    use proptest::prelude::*;

    /// What a job of the tests belongs to.
    fn limits(queue: usize, user: u8) -> Vec<Limit> {
        vec![(Group::Queue(queue), 2), (Group::Queue(9), 3), (Group::User(format!("user{user}")), 2)]
    }

    /// Looks at everybody each time: the first of all that wait which has room runs.
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
            self.jobs.iter().filter(|(_, (_, runs))| !runs).map(|(id, _)| *id).collect()
        }
    }

    proptest! {
        #[test]
        fn those_that_waited_longest_run_first_and_no_limit_is_ever_passed(
            steps in prop::collection::vec((0_usize..3, 0_u8..3, any::<prop::sample::Index>(), any::<bool>()), 1..120)
        ) {
            let (mut jobs, mut oracle) = (RunningJobs::default(), Oracle::default());
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
                // A restart changes nothing, in whatever order limits would let them in anew.
                let mut again = RunningJobs::default();
                again.recall(jobs.running());
                for (id, (limits, _)) in &oracle.jobs {
                    again.enter(*id, Time(id.0.into()), limits.clone());
                }
                prop_assert_eq!(again.running(), jobs.running());
            }
        }
    }

    #[test]
    fn jobs_wait_no_longer_for_one_whose_limits_are_gone_after_a_restart() {
        let mut jobs = RunningJobs::default();
        jobs.recall(vec![JobId(1)]);
        assert_eq!(jobs.enter(JobId(2), Time(2), vec![(Group::Queue(4), 1)]), []);
        assert!(jobs.is_waiting(JobId(2)));
        assert_eq!(jobs.enter(JobId(1), Time(1), Vec::new()), [JobId(2)]);
        assert_eq!(jobs.running(), [JobId(2)]);
    }

    #[test]
    fn a_job_says_for_which_limit_it_waits() {
        let mut jobs = RunningJobs::default();
        jobs.enter(JobId(1), Time(1), vec![(Group::Queue(4), 1)]);
        jobs.enter(JobId(2), Time(2), vec![(Group::User("ada".to_owned()), 3), (Group::Queue(4), 1)]);
        assert!(!jobs.is_waiting(JobId(1)) && jobs.is_waiting(JobId(2)));
        assert_eq!(jobs.waits_for(JobId(2)), Some(&(Group::Queue(4), 1)));
        assert_eq!(jobs.leave(JobId(1)), [JobId(2)]);
        assert_eq!(jobs.waits_for(JobId(2)), None);
    }
}
