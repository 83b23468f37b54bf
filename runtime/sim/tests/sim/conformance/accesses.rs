//! The number of jobs, attempts and workers that a policy examines per event: it must not grow with the size
//! of the cluster or backlog. Counts accesses through the view, not time. Periodic preemption rounds are
//! excluded.

use napreduce_engine::{Slots, Span, Time, accesses};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use napreduce_sim::{SimulatedJob, Simulation, SimulationSettings, Workload};

/// Limit on the growth of accesses per event with ten times the crowd.
const MORE: f64 = 2.0;

/// Returns accesses per event under a policy, after all jobs have arrived.
fn accesses_per_event(name: SchedulerName, jobs: u32, machines: u32) -> f64 {
    let policy = SchedulerConfiguration::named(name).build().unwrap();
    let settings = SimulationSettings::new(machines, Slots { map: 2, reduce: 1 });
    let workload = (0..jobs).map(|number| {
        let length = Span(20_000_000 + u64::from(number * 7919 % 1000) * 10_000);
        let plan = SimulatedJob::new(format!("job-{number}"), Time(0)).with_maps(3, length);
        SimulatedJob {
            user: format!("user-{}", number % 5).into(),
            ..plan
        }
        .with_reduces(1, length, length)
    });
    let mut simulation = Simulation::new(policy, settings, Workload::of(workload.collect()));
    while simulation.now() < Time(15_000_000) && simulation.step().unwrap() {}
    let before = accesses();
    let handled = simulation.so_far().events;
    while simulation.so_far().events < handled + 2_000 && simulation.step().unwrap() {}
    (accesses() - before) as f64 / (simulation.so_far().events - handled) as f64
}

#[test]
fn policies_do_not_scan_all_jobs_per_event() {
    for name in SchedulerName::ALL {
        let [few, many] = [300, 3_000].map(|jobs| accesses_per_event(name, jobs, 20));
        assert!(few > 0.0, "{name}: no access is counted");
        assert!(
            many <= few * MORE,
            "{name}: {few} accesses per event with 300 jobs, {many} with 3,000"
        );
    }
}

#[test]
fn policies_do_not_scan_all_attempts_per_event() {
    for name in SchedulerName::ALL {
        let [few, many] = [20, 200].map(|machines| accesses_per_event(name, 1_000, machines));
        assert!(
            many <= few * MORE,
            "{name}: {few} accesses per event on 20 machines, {many} on 200"
        );
    }
}
