//! Merging many small map outputs on a worker changes no byte of the output.

use std::fs;

use napreduce_tests::{Folder, OwnCluster, counter, parts, program, run, wait_until};

const MAPS: usize = 70;

#[test]
fn merged_small_map_outputs_keep_output() {
    let folder = Folder::new();
    for number in 0..MAPS {
        let line = |word: usize| format!("word{} of all, line {word}\n", (word * 31 + number) % 97);
        folder.write(
            &format!("many/{number:02}"),
            (0..50).map(line).collect::<String>(),
        );
    }
    let count = |more: &[&str]| {
        let mut command = program("wordcount");
        command
            .env_remove("NAPREDUCE_DIR")
            .current_dir(folder.root());
        command.args([
            "many",
            "--quiet",
            "--conf",
            "combine-files=false",
            "--reduces",
            "40",
        ]);
        run(command.args(more)).succeeded()
    };
    count(&["--output", "alone"]);
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let directory = cluster.directory().to_str().expect("text").to_owned();
    count(&["--output", "together", "--cluster", &directory]);
    assert_eq!(
        counter(&folder.path("together"), "SHUFFLED_MAPS"),
        40 * MAPS as u64
    );
    let read = |output: &str| parts(&folder.path(output));
    assert_eq!(read("together").len(), 40);
    assert!(read("together") == read("alone"));
    // The log of a daemon may be written later.
    wait_until("the worker's word", || {
        let said = fs::read_to_string(folder.path("up.log")).expect("a log");
        said.contains("merged small map outputs into ")
    });
    let jobs = cluster.directory().join("workers");
    wait_until("nothing is left of the job", || {
        let workers = fs::read_dir(&jobs)
            .expect("workers")
            .map(|entry| entry.expect("an entry").path());
        workers.into_iter().all(|worker| {
            fs::read_dir(worker.join("jobs")).is_ok_and(|mut all| all.next().is_none())
        })
    });
}
