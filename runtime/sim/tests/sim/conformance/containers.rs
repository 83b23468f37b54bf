//! Conformance in containers, with a master per job. Excludes policies that preempt maps, which would preempt
//! masters, and queue limits so small that masters fill them.

use super::*;

const PREEMPT_NO_MAPS: [&str; 8] = [
    "fifo",
    "fair",
    "composed",
    "capacity",
    "capacity, soft cap",
    "natjam",
    "natjam-deadline",
    "natjam-deadline by laxity",
];

fn contained(surroundings: Surroundings, seed: u64) -> SimulationSettings {
    let mut settings = settings(surroundings, seed);
    let containers = settings.slots.map + settings.slots.reduce + 2;
    settings.slots = napreduce_engine::Slots {
        map: containers,
        reduce: containers,
    };
    settings.overheads.master = Span::from_millis(500);
    settings.overheads.job_tasks = seed.is_multiple_of(3);
    // Three queues: on the smallest cluster a container is left for tasks.
    settings.share_slots(Some(2));
    settings
}

#[test]
fn containers_end_every_job_and_never_idle() {
    let found: Vec<Subject> = subjects()
        .into_iter()
        .filter(|subject| PREEMPT_NO_MAPS.contains(&subject.name))
        .collect();
    assert_eq!(found.len(), PREEMPT_NO_MAPS.len());
    for subject in &found {
        for seed in 0..SEEDS {
            let jobs = workloads::jobs(seed);
            let work = jobs
                .iter()
                .map(|job| job.work(TaskKind::Map).0 + job.work(TaskKind::Reduce).0)
                .sum::<u64>();
            let count = jobs.len();
            for surroundings in [
                Surroundings::Ideal,
                Surroundings::Slow,
                Surroundings::Failing,
            ] {
                let about = format!(
                    "{} in containers with seed {seed}, {surroundings:?}",
                    subject.name
                );
                let settings = contained(surroundings, seed);
                let mut simulation =
                    simulation(subject, settings, Workload::of(workloads::jobs(seed)));
                while simulation
                    .step()
                    .unwrap_or_else(|error| panic!("{about}: {error}"))
                {
                    simulation
                        .check()
                        .unwrap_or_else(|wrong| panic!("{about}: {wrong}"));
                    if subject.work_conserving && surroundings == Surroundings::Ideal {
                        assert_no_slot_idles(&simulation, &about);
                    }
                }
                let run = simulation
                    .run()
                    .unwrap_or_else(|error| panic!("{about}: {error}"));
                assert_eq!(run.jobs.len(), count, "{about}");
                if surroundings != Surroundings::Failing {
                    assert_eq!(run.slot_time.useful, work, "{about}");
                }
            }
        }
    }
}
