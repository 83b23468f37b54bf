//! Checkpoints of reduces by phase, and the cost of restoring them: hand-computed cases.

use super::*;
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use napreduce_sim::WorkloadFile;

const BY_PHASE: &str = "checkpoint-by-phase = { output-permille = 500, read-over = 50 }";

/// Returns the end of a research reduce that fetches 1000 bytes in 10 s and works for 20 s. It is
/// checkpointed after `saved_after` seconds for a production reduce of 5 s; 100 bytes of a checkpoint take
/// one second.
fn end_of_research(saved_after: u64, more: &str) -> f64 {
    let text = format!(
        "[overheads]\ncheckpoint-write = {{ bandwidth = 100 }}\ncheckpoint-read = {{ bandwidth = 100 }}\n{more}\n\
         [[job]]\nname = \"research\"\nqueue = \"research\"\nmemory = 600\n\
         maps = {{ count = 1, seconds = 0, output-bytes = 1000 }}\n\
         reduces = {{ count = 1, shuffle-seconds = 10, seconds = 20 }}\n\
         [[job]]\nname = \"production\"\nqueue = \"production\"\nsubmit = \"{saved_after}s\"\n\
         maps = {{ count = 1, seconds = 0 }}\nreduces = {{ count = 1, seconds = 5 }}\n"
    );
    let file = WorkloadFile::read("two", &text).unwrap();
    let mut settings = machines(1);
    settings.overheads = file.overheads;
    let policy = SchedulerConfiguration::named(SchedulerName::Natjam)
        .build()
        .unwrap();
    let run = Simulation::new(policy, settings, file.workload(1))
        .run()
        .unwrap();
    assert_eq!(run.job("research").unwrap().preemptions.checkpoint, 1);
    end(&run, "research")
}

#[test]
fn checkpoint_in_shuffle_holds_memory() {
    // 400 bytes: 4 s to write, 5 s of production, 4 s to read, and the remaining 26 s.
    assert_eq!(end_of_research(4, BY_PHASE), 4.0 + 4.0 + 5.0 + 4.0 + 26.0);
    // Of 800 bytes, 600 fit in memory; the others are already on disk.
    assert_eq!(end_of_research(8, BY_PHASE), 8.0 + 6.0 + 5.0 + 6.0 + 22.0);
}

#[test]
fn checkpoint_in_reduce_holds_output_and_skips_keys() {
    // Half of its input is processed: 250 bytes of output, and 500 bytes to skip at 50 per second.
    assert_eq!(
        end_of_research(20, BY_PHASE),
        20.0 + 2.5 + 5.0 + 2.5 + 10.0 + 10.0
    );
    let at_once = "checkpoint-by-phase = { output-permille = 500 }";
    assert_eq!(end_of_research(20, at_once), 20.0 + 2.5 + 5.0 + 2.5 + 10.0);
}

#[test]
fn checkpoint_without_phases_holds_task_memory() {
    for saved_after in [4, 20] {
        assert_eq!(
            end_of_research(saved_after, ""),
            30.0 + 6.0 + 5.0 + 6.0,
            "after {saved_after} s"
        );
    }
}
