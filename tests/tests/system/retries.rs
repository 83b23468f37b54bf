//! Map output that is lost or damaged, and attempts that are killed: the same output after a retry.
//!
//! These tests run embedded, on a cluster whose reduces read segments in place, and on one whose reduces
//! fetch them over the network.

use napreduce_tests::{Ended, Folder, counter, joined, program, run};
use rand::Rng;
use rand::SeedableRng;
use rand_pcg::Pcg64;

fn job(folder: &Folder, name: &str, more: &[&str]) -> Ended {
    let mut command = program("testjobs");
    command
        .current_dir(folder.root())
        .args(["in", "--job", name, "--output", "out", "--quiet"])
        .args(more);
    run(&mut command)
}

#[test]
fn task_killed_at_random_record_retries_to_same_output() {
    let seed = std::env::var("NAPREDUCE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_261_120);
    println!("seed {seed} (set NAPREDUCE_SEED to choose)");
    let mut random = Pcg64::seed_from_u64(seed);
    let folder = Folder::new();
    let text: String = (0..4000)
        .map(|_| {
            format!(
                "w{} w{}\n",
                random.random_range(0..300),
                random.random_range(0..9)
            )
        })
        .collect();
    folder.write("in", &text);
    job(&folder, "words-without-combiner", &["--reduces", "2"]).succeeded();
    let expected = joined(&folder.path("out"));
    for name in ["killed-map", "killed-reduce"] {
        for _ in 0..3 {
            let at = random
                .random_range(0..if name == "killed-map" { 900 } else { 100 })
                .to_string();
            let more = [
                "--number",
                &at,
                "--reduces",
                "2",
                "--split-size",
                "9k",
                "--overwrite",
            ];
            job(&folder, name, &more).succeeded();
            assert!(
                joined(&folder.path("out")) == expected,
                "{name} at {at}: other output than undisturbed"
            );
            let failed = counter(&folder.path("out"), "NUM_FAILED_MAPS")
                + counter(&folder.path("out"), "NUM_FAILED_REDUCES");
            assert!(
                failed > 0,
                "{name} at {at}: the kill that was to be survived did not happen"
            );
        }
    }
}

#[test]
fn damaged_map_output_reruns_only_that_map() {
    let folder = Folder::new();
    let lines: String = (0..9000)
        .map(|number| format!("word{} word{}\n", number % 500, number % 7))
        .collect();
    folder.write("in", &lines);
    job(
        &folder,
        "words-without-combiner",
        &["--reduces", "1", "--split-size", "40k"],
    )
    .succeeded();
    let expected = joined(&folder.path("out"));
    let maps = counter(&folder.path("out"), "TOTAL_LAUNCHED_MAPS");
    for at in ["5000", "20000", "70000"] {
        // Running reduces might have read the output before the damage.
        let late = ["--conf", "slowstart=1.0"];
        let more = [
            &[
                "--reduces",
                "1",
                "--split-size",
                "40k",
                "--overwrite",
                "--number",
                at,
            ],
            &late[..],
        ];
        job(&folder, "damaged", &more.concat()).succeeded();
        assert!(
            joined(&folder.path("out")) == expected,
            "byte {at}: other output than undisturbed"
        );
        assert_eq!(
            counter(&folder.path("out"), "TOTAL_LAUNCHED_MAPS"),
            maps + 1,
            "byte {at}"
        );
        assert_eq!(
            counter(&folder.path("out"), "NUM_FAILED_MAPS"),
            0,
            "byte {at}: the damage was not done"
        );
        // A reduce that reads in place is retried; a reduce that fetches waits for the new output.
        let reduces = counter(&folder.path("out"), "TOTAL_LAUNCHED_REDUCES");
        assert!((1..=2).contains(&reduces), "byte {at}: {reduces}");
    }
}
