//! Deadline admission with exact task lengths: every admitted job meets its deadline, and every rejected job
//! was infeasible. On one machine with one slot, where feasibility is known (Dertouzos, 1974).

use napreduce_engine::{Primitive, Span, SuspendedMax};
use napreduce_schedulers::natjam::{DeadlineAdmission, NatjamR, NatjamRConfiguration};
use napreduce_sim::{Ending, Run, Simulation, Workload};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::{SimulatedJob, at, machines, seconds};

/// From here on one job of each name has ended, so task lengths are known.
const KNOWN_FROM: u64 = 100;
/// Less than any gap between a bound and a deadline here, and more than the total preemption time.
const SLACK: Span = Span::from_millis(500);

fn run(jobs: Vec<SimulatedJob>, admission: DeadlineAdmission) -> Run {
    let mut settings = machines(1);
    settings.engine.preemption.suspended_max = SuspendedMax::Unlimited;
    settings.engine.preemption.preemptions_without_progress_max = u32::MAX;
    let primitive = Primitive::Suspend;
    let interval = Span::from_millis(10);
    let by_default = NatjamRConfiguration::default();
    let configuration = NatjamRConfiguration {
        admission,
        primitive,
        preempt_maps: true,
        interval,
        ..by_default
    };
    let policy = NatjamR::new(configuration).unwrap();
    Simulation::new(Box::new(policy), settings, Workload::of(jobs))
        .run()
        .unwrap()
}

/// Jobs that teach the task lengths; they have no deadline and end first.
fn lengths() -> Vec<SimulatedJob> {
    (1..=5).map(|length| of_length(length, 1, 0)).collect()
}

fn of_length(length: u64, maps: u32, submit: u64) -> SimulatedJob {
    SimulatedJob::new(format!("length-{length}"), at(submit)).with_maps(maps, seconds(length))
}

/// Returns which jobs can be admitted in order of arrival so that all meet their deadlines under EDF on one
/// slot. A job is submit time, work and deadline in seconds.
fn feasible(jobs: &[(u64, u64, u64)]) -> Vec<bool> {
    // Deadline, number and remaining work.
    let mut left: Vec<(u64, usize, u64)> = Vec::new();
    let mut clock = 0;
    let mut admitted = Vec::new();
    for (number, &(submit, work, deadline)) in jobs.iter().enumerate() {
        for _ in clock..submit {
            if let Some(first) = left.iter_mut().find(|job| job.2 > 0) {
                first.2 -= 1;
            }
        }
        clock = submit;
        let mut with = left.clone();
        with.push((deadline, number, work));
        with.sort_unstable();
        let mut until = submit;
        let in_time = with.iter().all(|(deadline, _, left)| {
            until += left;
            *left == 0 || until <= *deadline
        });
        if in_time {
            left = with;
        }
        admitted.push(in_time);
    }
    admitted
}

#[test]
fn admission_matches_feasibility() {
    let mut admitted = 0;
    let mut refused = 0;
    for seed in 0..60 {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut asked = Vec::new();
        let mut jobs = lengths();
        let mut submit = KNOWN_FROM;
        for _ in 0..30 {
            submit += random.random_range(0..8);
            let length = random.random_range(1..=5);
            let maps = random.random_range(1..=3);
            let work = length * u64::from(maps);
            let deadline = submit + work + random.random_range(0..30);
            asked.push((submit, work, deadline));
            let mut job = of_length(length, maps, submit);
            job.deadline = Some(seconds(deadline - submit) + SLACK);
            jobs.push(job);
        }
        let run = run(jobs, DeadlineAdmission::Refuse);
        let mut results: Vec<_> = run
            .jobs
            .iter()
            .filter(|job| job.submitted >= at(KNOWN_FROM))
            .collect();
        results.sort_by_key(|job| job.job);
        let expected = feasible(&asked);
        for ((job, asked), feasible) in results.iter().zip(&asked).zip(expected) {
            assert_eq!(
                job.ending == Ending::Succeeded,
                feasible,
                "seed {seed}: {asked:?}"
            );
            assert!(
                !feasible || !job.missed(),
                "seed {seed}: {asked:?} ended at {}",
                job.ended
            );
            admitted += u32::from(feasible);
            refused += u32::from(!feasible);
        }
    }
    assert!(
        admitted > 300 && refused > 300,
        "{admitted} admitted, {refused} refused"
    );
}

#[test]
fn admission_rejects_only_when_configured() {
    let mut late = of_length(5, 3, KNOWN_FROM);
    late.deadline = Some(seconds(1));
    for admission in [DeadlineAdmission::Off, DeadlineAdmission::Warn] {
        let run = run([lengths(), vec![late.clone()]].concat(), admission);
        assert!(run.jobs.iter().all(|job| job.ending == Ending::Succeeded));
        assert_eq!(run.jobs.iter().filter(|job| job.missed()).count(), 1);
    }
    let run = run([lengths(), vec![late]].concat(), DeadlineAdmission::Refuse);
    assert_eq!(
        run.jobs
            .iter()
            .filter(|job| job.ending == Ending::Failed)
            .count(),
        1
    );
}

#[test]
fn unknown_lengths_admit_every_job() {
    let mut first = of_length(5, 3, 0);
    first.deadline = Some(seconds(1));
    let run = run(vec![first], DeadlineAdmission::Refuse);
    assert_eq!(run.jobs[0].ending, Ending::Succeeded);
}
