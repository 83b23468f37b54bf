//! Each overhead alone, in hand-computed cases.

use crate::simulation::{at, end, fifo, machines, seconds};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use napreduce_sim::{SimulatedJob, Simulation, WorkloadFile};

fn two() -> Vec<SimulatedJob> {
    vec![
        SimulatedJob::new("a", at(0)).with_maps(1, seconds(10)),
        SimulatedJob::new("b", at(1)).with_maps(1, seconds(5)),
    ]
}

#[test]
fn launch_and_order_latency_delay_tasks() {
    let mut settings = machines(1);
    settings.overheads.launch = seconds(2);
    settings.overheads.order_latency = seconds(1);
    let run = fifo(settings, two());
    assert_eq!((end(&run, "a"), end(&run, "b")), (13.0, 21.0));
    assert_eq!(
        (run.slot_time.launch, run.slot_time.orders),
        (4_000_000, 2_000_000)
    );
}

#[test]
fn ends_are_reported_at_next_heartbeat() {
    let mut settings = machines(1);
    settings.overheads.heartbeat = seconds(3);
    let run = fifo(settings.clone(), two());
    // a: 0..10, known at 12; b: 12..17, known at 18.
    assert_eq!((end(&run, "a"), end(&run, "b")), (12.0, 18.0));
    assert_eq!(run.slot_time.reports, 3_000_000);
    settings.overheads.out_of_band = true;
    let run = fifo(settings, two());
    assert_eq!((end(&run, "a"), end(&run, "b")), (10.0, 15.0));
}

#[test]
fn end_at_heartbeat_is_reported_by_it() {
    let mut settings = machines(1);
    settings.overheads.heartbeat = seconds(5);
    let run = fifo(settings, two());
    assert_eq!((end(&run, "a"), end(&run, "b")), (10.0, 15.0));
}

#[test]
fn order_leaves_with_next_heartbeat() {
    let mut settings = machines(1);
    settings.overheads.heartbeat = seconds(4);
    let run = fifo(
        settings,
        vec![SimulatedJob::new("a", at(1)).with_maps(1, seconds(4))],
    );
    // Ordered at 1, leaves at 4, ends at 8 and is reported immediately.
    assert_eq!((end(&run, "a"), run.slot_time.orders), (8.0, 3_000_000));
}

#[test]
fn remote_map_starts_later() {
    let mut settings = machines(2);
    settings.overheads.remote_input = seconds(3);
    let mut job = SimulatedJob::new("job", at(0)).with_maps(2, seconds(10));
    job.maps[0].preferred = vec![1];
    job.maps[1].preferred = vec![1];
    let run = fifo(settings, vec![job]);
    assert_eq!((end(&run, "job"), run.slot_time.launch), (13.0, 3_000_000));
}

/// 10 bytes of memory and tasks of 6. When one is suspended, 2 bytes are paged out in 2 s while the other
/// starts, and paged in when it resumes.
#[test]
fn suspended_task_is_paged_out_for_new_one() {
    let file = |ram: u64| {
        let memory = format!("[overheads]\nmachine-memory = {{ ram = {ram}, bandwidth = 1 }}\n");
        let job = |name: &str, submit: u64| {
            format!(
                "[[job]]\nname = \"{name}\"\nsubmit = \"{submit}s\"\nmemory = 6\nmaps = {{ count = 1, seconds = 10 }}\n"
            )
        };
        WorkloadFile::read(
            "two",
            &format!("{memory}{}{}", job("low", 0), job("high", 4)),
        )
        .expect("the workload is valid")
    };
    for (ram, high, low, moved) in [(12, 10.0, 20.0, 0), (10, 12.0, 24.0, 2), (6, 16.0, 32.0, 6)] {
        let file = file(ram);
        let mut settings = machines(1);
        settings.overheads = file.overheads;
        let rules = "when submitted(high) do suspend(low)\nwhen finished(high) do resume(low)";
        let mut trigger = SchedulerConfiguration::named(SchedulerName::Trigger);
        trigger.tables.trigger.rules = rules.to_owned();
        let run = Simulation::new(trigger.build().unwrap(), settings, file.workload(1))
            .run()
            .unwrap();
        let sojourn = run.job("high").unwrap().sojourn().0 as f64 / 1e6;
        assert_eq!(
            (sojourn, end(&run, "low"), run.paged_out),
            (high, low, moved),
            "{ram} bytes"
        );
    }
}

/// The reduce of the younger research job is checkpointed for production, and restored where the older one
/// ended.
#[test]
fn reduce_restored_elsewhere_repeats_shuffle() {
    let end_of_it = |overheads: &str| {
        let job = |name: &str, submit: u64, queue: &str, seconds: u64| {
            format!(
                "[[job]]\nname = \"{name}\"\nsubmit = \"{submit}s\"\nqueue = \"{queue}\"\nmaps = {{ count = 1, seconds = 1 }}\n\
                 reduces = {{ count = 1, shuffle-seconds = 3, seconds = {seconds} }}\n"
            )
        };
        let older = job("older", 0, "research", 20);
        let younger = job("younger", 1, "research", 40);
        let text = format!(
            "{overheads}{older}{younger}{}",
            job("urgent", 10, "production", 30)
        );
        let file = WorkloadFile::read("three", &text).expect("the workload is valid");
        let mut settings = machines(2);
        settings.overheads = file.overheads;
        let policy = SchedulerConfiguration::named(SchedulerName::Natjam)
            .build()
            .unwrap();
        let run = Simulation::new(policy, settings, file.workload(1))
            .run()
            .unwrap();
        assert_eq!(run.job("younger").unwrap().preemptions.checkpoint, 1);
        end(&run, "younger")
    };
    let refetching = end_of_it("[overheads]\nrestore-refetches = true\n");
    assert_eq!(refetching - end_of_it(""), 3.0);
}
