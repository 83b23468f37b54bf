//! HFSP's virtual cluster against a reference model that advances every task microsecond by microsecond.
//! Jobs, slots and times are small, so that coincidences occur.

use std::collections::BTreeMap;

use napreduce_engine::{JobId, SortedMap, Span, Time};
use napreduce_schedulers::hfsp::shares::Shares;
use napreduce_schedulers::hfsp::{ENDLESS, VirtualCluster};
use proptest::prelude::*;

/// A job of the model: arrival, weight, and remaining time of each task.
#[derive(Debug, Clone)]
struct Slow {
    submitted: Time,
    weight: u32,
    left: Vec<u64>,
}

#[derive(Debug, Clone, Default)]
struct Model {
    now: u64,
    slots: u32,
    jobs: BTreeMap<JobId, Slow>,
    finished: Vec<(Time, JobId)>,
}

impl Model {
    /// Allots slots one at a time, as published: to the job with the fewest slots per weight, then the fewest
    /// tasks left.
    fn allotted(&self) -> BTreeMap<JobId, u32> {
        let mut given: BTreeMap<JobId, u32> = self.jobs.keys().map(|job| (*job, 0)).collect();
        for _ in 0..self.slots {
            let open = self
                .jobs
                .iter()
                .filter(|(job, slow)| (given[job] as usize) < slow.left.len());
            let next = open.min_by(|(one, a), (other, b)| {
                let turns = u64::from(given[one]) * u64::from(b.weight);
                let others = u64::from(given[other]) * u64::from(a.weight);
                let size = |slow: &Slow, job: &JobId| (slow.left.len(), slow.submitted, *job);
                turns.cmp(&others).then(size(a, one).cmp(&size(b, other)))
            });
            let Some((&job, _)) = next else { break };
            *given.get_mut(&job).expect("the job is in the model") += 1;
        }
        given
    }

    fn tick(&mut self) {
        self.drop_ended();
        for (job, slots) in self.allotted() {
            let left = &mut self
                .jobs
                .get_mut(&job)
                .expect("the job is in the model")
                .left;
            left.sort_unstable();
            left.iter_mut()
                .take(slots as usize)
                .for_each(|left| *left -= 1);
        }
        self.now += 1;
        self.drop_ended();
    }

    /// Ends tasks without remaining time that hold a slot, repeatedly, since their slots pass to other tasks.
    fn drop_ended(&mut self) {
        loop {
            let allotted = self.allotted();
            let mut ended = false;
            for (job, slow) in &mut self.jobs {
                slow.left.sort_unstable();
                let zeros = slow.left.iter().filter(|left| **left == 0).count();
                let gone = zeros.min(allotted[job] as usize);
                slow.left.drain(..gone);
                ended |= gone > 0;
            }
            let mut done: Vec<(Time, JobId)> = self
                .jobs
                .iter()
                .filter(|(_, slow)| slow.left.is_empty())
                .map(|(job, slow)| (slow.submitted, *job))
                .collect();
            done.sort_unstable();
            for (_, job) in done {
                self.jobs.remove(&job);
                self.finished.push((Time(self.now), job));
            }
            if !ended {
                return;
            }
        }
    }

    fn remaining(&self, job: JobId) -> Span {
        Span(self.jobs.get(&job).map_or(0, |slow| slow.left.iter().sum()))
    }
}

#[derive(Debug, Clone)]
enum Step {
    Pass(u64),
    Enter { weight: u32, tasks: Vec<u64> },
    Leave(usize),
    Slots(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lengths = prop_oneof![
        (1..8_u64, 1..6_usize).prop_map(|(length, count)| vec![length; count]),
        prop::collection::vec(0..6_u64, 1..6),
    ];
    let step = prop_oneof![
        4 => (1..6_u64).prop_map(Step::Pass),
        4 => (1..4_u32, lengths).prop_map(|(weight, tasks)| Step::Enter { weight, tasks }),
        1 => (0..8_usize).prop_map(Step::Leave),
        1 => (0..6_u32).prop_map(Step::Slots),
    ];
    prop::collection::vec(step, 1..25)
}

fn play(steps: &[Step], slots: u32) -> Result<(), TestCaseError> {
    let mut fast = VirtualCluster::new(slots);
    let mut slow = Model {
        slots,
        ..Model::default()
    };
    let mut entered = 0_u32;
    let mut finished = Vec::new();
    for step in steps {
        match step {
            Step::Pass(span) => (0..*span).for_each(|_| slow.tick()),
            Step::Enter { weight, tasks } => {
                entered += 1;
                let job = JobId(entered);
                let submitted = Time(slow.now);
                let groups: Vec<(Span, u32)> =
                    tasks.iter().map(|&length| (Span(length), 1)).collect();
                fast.enter(job, submitted, *weight, &groups);
                slow.jobs.insert(
                    job,
                    Slow {
                        submitted,
                        weight: *weight,
                        left: tasks.clone(),
                    },
                );
                slow.drop_ended();
            }
            Step::Leave(which) => {
                let job = slow.jobs.keys().nth(*which).copied();
                if let Some(job) = job {
                    fast.leave(job);
                    slow.jobs.remove(&job);
                    slow.drop_ended();
                }
            }
            Step::Slots(count) => {
                fast.set_slots(*count);
                slow.slots = *count;
                slow.drop_ended();
            }
        }
        fast.age(Time(slow.now));
        for job in (1..=entered).map(JobId) {
            prop_assert_eq!(
                fast.remaining(job),
                slow.remaining(job),
                "remaining time of {} at {}",
                job,
                slow.now
            );
        }
        finished.extend(fast.take_finished());
    }
    prop_assert_eq!(&finished, &slow.finished);
    let projected = fast.project(usize::MAX);
    if slow.slots > 0 {
        let known = slow.finished.len();
        while !slow.jobs.is_empty() {
            slow.tick();
        }
        let rest: SortedMap<JobId, Time> = slow.finished[known..]
            .iter()
            .map(|&(at, job)| (job, at))
            .collect();
        prop_assert_eq!(projected.finishes, rest);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn task_groups_match_single_tasks(steps in steps(), slots in 1..5_u32) {
        play(&steps, slots)?;
    }
}

#[test]
fn many_tasks_form_few_groups() {
    let mut cluster = VirtualCluster::new(2000);
    cluster.enter(JobId(1), Time(0), 1, &[(Span::from_secs(10), 170_000)]);
    let projection = cluster.project(usize::MAX);
    assert_eq!(
        projection.finishes[&JobId(1)],
        Time(0) + Span::from_secs(850)
    );
    assert_eq!(projection.steps, 85);
}

#[test]
fn endless_job_takes_share_and_never_ends() {
    let mut cluster = VirtualCluster::new(2);
    cluster.enter(JobId(1), Time(0), 1, &[(ENDLESS, 4)]);
    cluster.enter(JobId(2), Time(0), 1, &[(Span(10), 2)]);
    let finishes = cluster.project(usize::MAX).finishes;
    assert_eq!(
        finishes,
        SortedMap::from_iter([(JobId(1), Time(u64::MAX)), (JobId(2), Time(20))])
    );
    cluster.age(Time(5));
    cluster.resize(JobId(1), Span(30));
    assert_eq!(
        cluster.remaining(JobId(1)),
        Span(120),
        "work on an endless task counts for nothing"
    );
    cluster.age(Time(15));
    assert_eq!(cluster.remaining(JobId(1)), Span(110));
}

#[test]
fn resized_task_keeps_completed_fraction() {
    let mut cluster = VirtualCluster::new(2);
    cluster.enter(JobId(1), Time(0), 1, &[(Span(60), 3)]);
    cluster.age(Time(15));
    cluster.resize(JobId(1), Span(120));
    assert_eq!(cluster.remaining(JobId(1)), Span(90 + 90 + 120));
    cluster.age(Time(15 + 90));
    assert_eq!(
        cluster.remaining(JobId(1)),
        Span(120),
        "two tasks ended, the third starts"
    );
}

#[test]
fn truncated_projection_estimates_rest() {
    let mut cluster = VirtualCluster::new(2);
    cluster.enter(JobId(1), Time(0), 1, &[(Span(10), 100)]);
    cluster.enter(JobId(2), Time(0), 1, &[(Span(5), 2)]);
    let exact = cluster.project(usize::MAX).finishes;
    let rough = cluster.project(0).finishes;
    assert_eq!(
        exact,
        SortedMap::from_iter([(JobId(1), Time(510)), (JobId(2), Time(10))])
    );
    assert_eq!(
        rough,
        SortedMap::from_iter([(JobId(1), Time(1000)), (JobId(2), Time(10))])
    );
}

#[test]
fn slots_are_proportional_to_weights() {
    let mut shares = Shares::new(9);
    for (job, weight) in [(1, 1), (2, 2), (3, 6)] {
        shares.enter(JobId(job), Time(0), weight, 100);
    }
    shares.settle();
    assert_eq!([1, 2, 3].map(|job| shares.allotted(JobId(job))), [1, 2, 6]);
    shares.set_tasks(JobId(3), 2);
    shares.settle();
    let rest = [1, 2, 3].map(|job| shares.allotted(JobId(job)));
    assert_eq!((rest[0] + rest[1], rest[2]), (7, 2));
    assert!(rest == [2, 5, 2] || rest == [3, 4, 2], "{rest:?}");
}
