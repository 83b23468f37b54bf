//! Map output in the memory of a worker: limits, equal outputs, and release at the end of the job or the
//! worker.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use napreduce_tests::{
    Folder, GatedJob, OwnCluster, Process, counter, parts, program, run, wait_until,
};

/// Enough input per map that its output is kept in memory.
const SPLIT: &str = "2MiB";
const MAPS: u64 = 6;

/// Writes some MiB of mostly distinct words.
fn input(folder: &Folder) {
    let line = |number: u32| {
        let mixed = number.wrapping_mul(2_654_435_761);
        format!(
            "{mixed:08x}{:08x} {:08x}\n",
            mixed ^ 0x5bd1_e995,
            mixed.rotate_left(7)
        )
    };
    // Each line has 26 bytes.
    folder.write(
        "words",
        (0..(6 << 21) / 26 - 100).map(line).collect::<String>(),
    );
}

/// Counts the words, on a cluster if one is given.
fn count(folder: &Folder, output: &str, cluster: Option<&Path>) {
    let mut command = program("wordcount");
    command
        .env_remove("NAPREDUCE_DIR")
        .env_remove("NAPREDUCE_CLUSTER")
        .current_dir(folder.root());
    command.args([
        "words",
        "--quiet",
        "--split-size",
        SPLIT,
        "--reduces",
        "3",
        "--output",
        output,
    ]);
    if let Some(cluster) = cluster {
        command.arg("--cluster").arg(cluster);
    }
    run(&mut command).succeeded();
}

/// Returns how many segments a process keeps in memory.
fn kept_by(process: Process) -> usize {
    let open = fs::read_dir(format!("/proc/{}/fd", process.number))
        .into_iter()
        .flatten()
        .flatten();
    open.filter(|entry| {
        fs::read_link(entry.path())
            .is_ok_and(|to| to.to_string_lossy().contains("napreduce-segment"))
    })
    .count()
}

#[test]
fn map_output_in_memory_is_freed_at_job_end() {
    let folder = Folder::new();
    input(&folder);
    let cluster = OwnCluster::start(&folder, 2, "fifo", "[worker]\nsegment-memory = \"64MiB\"\n");
    count(&folder, "kept", Some(cluster.directory()));
    let kept = counter(&folder.path("kept"), "MAP_OUTPUT_MEMORY_BYTES");
    let all = counter(&folder.path("kept"), "MAP_OUTPUT_MATERIALIZED_BYTES");
    // The first output of each worker has no estimate and goes to disk.
    assert!(
        kept > all / MAPS && kept <= all / MAPS * (MAPS - 1),
        "{kept} of {all}"
    );
    wait_until("nothing is kept any more", || {
        cluster.workers().into_iter().all(|one| kept_by(one) == 0)
    });
    drop(cluster);

    let other = Folder::new();
    input(&other);
    let cluster = OwnCluster::start(&other, 2, "fifo", "[worker]\nsegment-memory = \"0\"\n");
    count(&other, "on-disk", Some(cluster.directory()));
    assert_eq!(
        counter(&other.path("on-disk"), "MAP_OUTPUT_MEMORY_BYTES"),
        0
    );
    assert!(
        parts(&folder.path("kept")) == parts(&other.path("on-disk")),
        "the same output"
    );
}

#[test]
fn map_output_beyond_segment_memory_goes_to_disk() {
    let folder = Folder::new();
    input(&folder);
    let cluster = OwnCluster::start(&folder, 1, "fifo", "[worker]\nsegment-memory = \"5MiB\"\n");
    count(&folder, "some", Some(cluster.directory()));
    let kept = counter(&folder.path("some"), "MAP_OUTPUT_MEMORY_BYTES");
    assert!(
        kept > 0 && kept <= 5 << 20,
        "{kept} bytes of the 5 MiB that there may be"
    );
    count(&folder, "embedded", None);
    assert!(
        parts(&folder.path("some")) == parts(&folder.path("embedded")),
        "the same output"
    );
}

#[test]
fn map_output_of_killed_worker_is_recomputed() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 2, "fifo", "[worker]\nsegment-memory = \"64MiB\"\n");
    let job = GatedJob::submit(&folder, &cluster, "gated", "again", 1, MAPS as usize);
    // The last map delays the reduce, so that the lost output was not yet fetched.
    (0..MAPS - 1).for_each(|map| job.open(&format!("m_{map:04}")));
    let holder = || cluster.workers().into_iter().find(|one| kept_by(*one) > 0);
    wait_until("something is kept", || holder().is_some());
    holder()
        .expect("a worker that keeps something")
        .signal(Signal::KILL);
    job.ends_as_undisturbed();
    let launched = counter(&job.output(), "TOTAL_LAUNCHED_MAPS");
    assert!(launched > MAPS, "{launched} launched, so nothing was lost");
}
