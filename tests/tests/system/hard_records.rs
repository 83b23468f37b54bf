//! Unusual keys, values and groups, and every stage of the builder: the correct result or an error that names
//! the record.

use napreduce_tests::{Ended, Folder, counter, joined, parts, program, run, sorted_lines};

fn job(folder: &Folder, name: &str, more: &[&str]) -> Ended {
    let mut command = program("testjobs");
    command
        .current_dir(folder.root())
        .args(["in", "--job", name, "--output", "out", "--quiet"])
        .args(more);
    run(&mut command)
}

fn output(folder: &Folder) -> String {
    String::from_utf8(joined(&folder.path("out"))).expect("text output")
}

#[test]
fn equal_keys_make_one_group() {
    let folder = Folder::new();
    folder.write("in", "same\n".repeat(200_000));
    job(
        &folder,
        "words-without-combiner",
        &["--reduces", "3", "--split-size", "100k"],
    )
    .succeeded();
    assert_eq!(output(&folder), "same\t200000\n");
}

#[test]
fn ten_million_values_of_one_key_fit_small_memory() {
    let folder = Folder::new();
    folder.write("in", "abc\n".repeat(1000));
    job(
        &folder,
        "one-key",
        &["--number", "10000", "--task-memory", "8MiB"],
    )
    .succeeded();
    assert_eq!(output(&folder), "key\t10000000\t30000000\n");
    let peak = counter(&folder.path("out"), "PEAK_ANON_BYTES");
    assert!(
        peak < 24 << 20,
        "{peak} bytes of memory for a task of 8 MiB"
    );
}

#[test]
fn keys_of_any_length_keep_order_and_count() {
    let folder = Folder::new();
    let lines: Vec<String> = [
        0usize, 1, 7, 8, 9, 10, 11, 12, 65_534, 65_535, 65_536, 65_537, 300_000,
    ]
    .iter()
    .map(|length| "k".repeat(*length))
    .collect();
    folder.write(
        "in",
        format!("{}\n", [lines.clone(), lines.clone()].concat().join("\n")),
    );
    job(
        &folder,
        "lines-as-keys",
        &["--reduces", "1", "--task-memory", "1MiB"],
    )
    .succeeded();
    let seen: Vec<(usize, usize)> = output(&folder)
        .lines()
        .map(|line| {
            let fields: Vec<_> = line.split('\t').collect();
            (fields[1].parse().unwrap(), fields[2].parse().unwrap())
        })
        .collect();
    let expected: Vec<(usize, usize)> = lines.iter().map(|line| (line.len(), 2)).collect();
    assert_eq!(seen, expected, "a shorter prefix comes first");
}

#[test]
fn value_larger_than_block_is_kept() {
    let folder = Folder::new();
    folder.write("in", "ab\ncd\nef\n");
    job(
        &folder,
        "big-values",
        &[
            "--number",
            "700000",
            "--reduces",
            "1",
            "--task-memory",
            "1MiB",
        ],
    )
    .succeeded();
    let expected: String = ["ab", "cd", "ef"]
        .iter()
        .map(|key| format!("{key}\t{}\n", key.repeat(350_000)))
        .collect();
    assert!(output(&folder) == expected);
}

#[test]
fn secondary_sort_orders_values_in_group() {
    let folder = Folder::new();
    let mut lines = String::new();
    for number in 0..500u64 {
        // Users include one that is a prefix of another and one with a NUL inside.
        let user = ["ann", "anna", "a\0n"][(number % 3) as usize];
        lines.push_str(&format!("{user}\t{}\n", (number * 7919) % 1000));
    }
    lines.push_str("ann\tnever\nnothing\n");
    folder.write("in", &lines);
    job(&folder, "visits", &["--reduces", "4", "--split-size", "1k"]).succeeded();
    for line in output(&folder).lines() {
        let (user, times) = line.split_once('\t').expect("two fields");
        let times: Vec<u64> = times.split(',').map(|time| time.parse().unwrap()).collect();
        assert!(times.is_sorted(), "{user}: {times:?}");
    }
    assert_eq!(output(&folder).lines().count(), 3, "no group is divided");
    assert_eq!(counter(&folder.path("out"), "bad times"), 1);
    assert_eq!(counter(&folder.path("out"), "bad lines"), 1);
}

#[test]
fn unread_values_of_group_are_skipped() {
    let folder = Folder::new();
    let lines: String = (0..3000)
        .map(|number| format!("k{}\tv{number:04}\n", number % 3))
        .collect();
    folder.write("in", lines);
    job(
        &folder,
        "first-of-group",
        &["--reduces", "1", "--split-size", "5k"],
    )
    .succeeded();
    assert_eq!(
        output(&folder),
        "k0\tv0000\nk1\tv0001\nk2\tv0002\n",
        "the first value as emitted"
    );
}

#[test]
fn custom_partitioner_selects_part_file() {
    let folder = Folder::new();
    folder.write(
        "in",
        (0..100)
            .map(|number| format!("{number}\n"))
            .collect::<String>(),
    );
    job(&folder, "by-remainder", &["--reduces", "3"]).succeeded();
    for (part, (_, bytes)) in parts(&folder.path("out")).iter().enumerate() {
        let numbers: Vec<usize> = String::from_utf8_lossy(bytes)
            .lines()
            .map(|line| line.split('\t').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(
            numbers,
            (0..100)
                .filter(|number| number % 3 == part)
                .collect::<Vec<_>>()
        );
    }
}

#[test]
fn partition_out_of_range_is_named() {
    let folder = Folder::new();
    folder.write("in", "line\n");
    job(&folder, "bad-partition", &["--reduces", "2"]).failed(
        1,
        &[
            "job_0001_m_0000 failed 4 times",
            "the partitioner returned 2 for key \"line\"; the job has 2 partitions",
        ],
    );
}

#[test]
fn record_of_wrong_length_is_named() {
    let folder = Folder::new();
    folder.write("in", "0123456789\nshort\n");
    job(&folder, "bad-length", &["--reduces", "1"])
        .failed(1, &["has 5 bytes; the output format needs 10"]);
}

#[test]
fn setup_finish_and_state_belong_to_attempt() {
    let folder = Folder::new();
    folder.write("in", "a\nb\nc\n");
    job(
        &folder,
        "stateful",
        &["--reduces", "1", "--split-size", "2"],
    )
    .succeeded();
    assert_eq!(
        output(&folder),
        "begin\n1\tlines\t3\n2\tprepared\t3\nend\t2\n"
    );
}

#[test]
fn chain_passes_results_and_removes_intermediate_data() {
    let folder = Folder::new();
    folder.write("in", "b a c\na b\na\n");
    let mut command = program("testjobs");
    command.current_dir(folder.root()).args([
        "in", "--job", "chain", "--output", "out", "--format", "json",
    ]);
    let ended = run(&mut command).succeeded();
    assert_eq!(output(&folder), "a\t3\nb\t2\nc\t1\n");
    let jobs: Vec<String> = ended
        .stdout
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["job"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(jobs, ["job_0001", "job_0002"]);
    let left: Vec<_> = std::fs::read_dir(folder.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn chain_with_existing_output_is_refused_before_start() {
    let folder = Folder::new();
    folder.write("in", "b a c\n");
    folder.write("out/part-r-00000", "kept");
    let chain = |more: &[&str]| {
        let mut command = program("testjobs");
        command
            .current_dir(folder.root())
            .args(["in", "--job", "chain", "--output", "out"])
            .args(more);
        run(&mut command)
    };
    let refused =
        chain(&["--format", "json"]).failed(2, &["output directory out/ exists; pass --overwrite"]);
    assert_eq!(refused.stdout, "", "a job has run");
    assert_eq!(output(&folder), "kept");
    chain(&["--overwrite"]).succeeded();
    assert_eq!(output(&folder), "a\t1\nb\t1\nc\t1\n");
}

#[test]
fn matching_lines_keeps_order_and_counts_patterns() {
    let folder = Folder::new();
    folder.write("in", "alpha\nbeta\nalphabet\ngamma\n");
    let mut command = program("matching-lines");
    command.current_dir(folder.root());
    command.args([
        "in",
        "--output",
        "out",
        "--quiet",
        "-e",
        "alpha",
        "-e",
        "bet",
        "--split-size",
        "8",
    ]);
    run(&mut command).succeeded();
    assert_eq!(output(&folder), "alpha\nbeta\nalphabet\n");
    assert_eq!(counter(&folder.path("out"), "lines matching alpha"), 2);
    assert_eq!(counter(&folder.path("out"), "lines matching bet"), 2);
    assert!(folder.has("out/part-m-00000"));
}

#[test]
fn map_output_compression_keeps_output() {
    let folder = Folder::new();
    folder.write("in", "some words and some more words\n".repeat(5000));
    job(
        &folder,
        "words-without-combiner",
        &["--conf", "compression=lz4", "--task-memory", "1MiB"],
    )
    .succeeded();
    let expected = "and\t5000\nmore\t5000\nsome\t10000\nwords\t10000\n";
    assert_eq!(
        String::from_utf8(sorted_lines(output(&folder).as_bytes())).unwrap(),
        expected
    );
}
