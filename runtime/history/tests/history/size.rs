//! Size of the files, and time to open a large history.

use std::fs;
use std::time::Instant;

use napreduce_engine::JobId;
use napreduce_history::{EndedJob, HistoryStore};

use super::samples::{Scene, job, listed};

#[test]
fn recording_of_100_000_attempts_fits_8_mib() {
    let scene = Scene::new();
    let history = scene.open();
    let began = Instant::now();
    history.add(&job(1, 100_000)).expect("written");
    println!("written in {:?}", began.elapsed());
    let bytes = fs::metadata(scene.path("job_0001.jsonl.gz"))
        .expect("a file")
        .len();
    assert!(bytes <= 8 << 20, "{bytes} bytes");
    let head = fs::metadata(scene.path("job_0001.json"))
        .expect("a file")
        .len();
    assert!(head <= 64 << 10, "{head} bytes");
    println!("100,000 attempts: recording {bytes} bytes, head {head} bytes");
    let began = Instant::now();
    let read = history.read(JobId(1)).expect("present").expect("readable");
    assert_eq!(read.detail.attempts.len(), 100_000);
    println!("read in {:?}", began.elapsed());
}

/// `cargo test --release -p napreduce-history --test history -- --ignored --nocapture measure_opening`
#[test]
#[ignore = "measures time and memory"]
fn measure_opening_of_ten_thousand_jobs() {
    let resident = || {
        let status = fs::read_to_string("/proc/self/status").expect("a status");
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS"))
            .expect("a line")
            .to_owned();
        line.split_whitespace()
            .nth(1)
            .and_then(|kib| kib.parse::<u64>().ok())
            .expect("a number")
    };
    let before = resident();
    let scene = Scene::new();
    let history = scene.open();
    let template = job(1, 20);
    let began = Instant::now();
    for id in 1..=10_000 {
        let mut ended: EndedJob = template.clone();
        ended.token = u128::from(id);
        ended.detail.summary.job.0 = id;
        history.add(&ended).expect("written");
    }
    println!("written: {:?} a job", began.elapsed() / 10_000);
    drop(history);
    let began = Instant::now();
    let history = scene.open();
    println!(
        "by the index: {:?}; at most {} KiB of memory",
        began.elapsed(),
        resident() - before
    );
    let began = Instant::now();
    assert_eq!(listed(&history).len(), 10_000);
    println!("listed: {:?}", began.elapsed());
    drop(history);
    fs::remove_file(scene.path("index.jsonl")).expect("removed");
    let began = Instant::now();
    assert_eq!(listed(&scene.open()).len(), 10_000);
    println!("by the heads: {:?}", began.elapsed());
}
