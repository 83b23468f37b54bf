//! The command `nap sim`: output, files, plots, and invalid arguments.

use std::fs;

use napreduce_tests::{Ended, Folder, program, run};
use serde_json::Value;

const WORKLOAD: &str = r#"
about = "Three jobs"
cluster = { machines = 2, map-slots = 2, reduce-slots = 1 }
[[job]]
name = "long"
maps = { count = 9, seconds = { uniform = [20, 30] } }
reduces = { count = 2, seconds = 10 }
[[job]]
name = "short"
submit = "10s"
repeat = 2
arrivals = { fixed = 7 }
deadline = "30s"
maps = { count = 2, seconds = 3 }
"#;

fn sim(folder: &Folder, arguments: &[&str]) -> Ended {
    run(program("nap")
        .current_dir(folder.root())
        .arg("sim")
        .args(arguments))
}

#[test]
fn schedulers_are_compared_as_table_and_json() {
    let folder = Folder::new();
    folder.write("three.toml", WORKLOAD);
    let table = sim(
        &folder,
        &[
            "--workload",
            "three.toml",
            "--scheduler",
            "fifo,fair,hfsp",
            "--runs",
            "3",
        ],
    );
    let table = table.succeeded().stdout;
    assert!(
        table.starts_with(
            "three.toml: 3 jobs on 2 nodes with 2 map and 1 reduce slots, seeds 0 to 2\n"
        ),
        "{table}"
    );
    for row in [
        "sojourn mean, s",
        "slowdown mean",
        "makespan, s",
        "reduce wait mean, s",
        "missed",
        "short  ",
    ] {
        assert!(table.contains(row), "{row}: {table}");
    }
    assert!(table.contains('±'), "three runs have an interval: {table}");
    let arguments = [
        "--workload",
        "three.toml",
        "--scheduler",
        "fifo,fair",
        "--format",
        "json",
        "--nodes",
        "3",
    ];
    let said: Value =
        serde_json::from_str(&sim(&folder, &arguments).succeeded().stdout).expect("JSON");
    assert_eq!(
        (&said["settings"]["machines"], &said["jobs"]),
        (&3.into(), &3.into())
    );
    let names: Vec<&str> = said["schedulers"]
        .as_array()
        .expect("two")
        .iter()
        .filter_map(|one| one["scheduler"].as_str())
        .collect();
    assert_eq!(names, ["fifo", "fair"]);
    assert_eq!(said["schedulers"][0]["runs"][0]["jobs"], 3);
}

#[test]
fn equal_seeds_give_equal_events_and_plots() {
    let folder = Folder::new();
    folder.write("three.toml", WORKLOAD);
    let arguments = |events: &'static str, seed: &'static str| {
        [
            "--workload",
            "three.toml",
            "--scheduler",
            "hfsp",
            "--events",
            events,
            "--seed",
            seed,
            "--plot",
            "figures",
        ]
    };
    for (events, seed) in [("one", "5"), ("again", "5"), ("other", "6")] {
        sim(&folder, &arguments(events, seed)).succeeded();
    }
    let events = |name| fs::read(folder.path(name)).expect("events");
    assert_eq!(events("one"), events("again"));
    assert_ne!(
        events("one"),
        events("other"),
        "the lengths of tasks are drawn"
    );
    for figure in ["sojourn", "slots-hfsp-map", "slots-hfsp-reduce"] {
        let svg =
            fs::read_to_string(folder.path(&format!("figures/{figure}.svg"))).expect("a figure");
        assert!(
            svg.starts_with("<svg") && svg.contains("</svg>"),
            "{figure}"
        );
    }
}

#[test]
fn equal_runs_print_equal_json() {
    let folder = Folder::new();
    folder.write("three.toml", WORKLOAD);
    let arguments = [
        "--workload",
        "three.toml",
        "--scheduler",
        "fifo,hfsp",
        "--runs",
        "2",
        "--format",
        "json",
    ];
    let said = || sim(&folder, &arguments).succeeded().stdout;
    assert_eq!(said(), said());
}

#[test]
fn numbers_out_of_range_are_refused() {
    let folder = Folder::new();
    folder.write("three.toml", WORKLOAD);
    folder.write("huge.tsv", "job0\t1\t1\t18446744073709551615\t1\t5\n");
    for (arguments, says) in [
        (
            &["--workload", "three.toml", "--nodes", "4294967295"][..],
            "too many machines: 4294967295 (limit 100000)",
        ),
        (
            &["--workload", "three.toml", "--map-slots", "4294967295"],
            "(limit 10000000)",
        ),
        (
            &["--workload", "three.toml", "--runs", "4294967295"],
            "must be at most 100000 runs",
        ),
        (
            &[
                "--workload",
                "three.toml",
                "--seed",
                "18446744073709551615",
                "--runs",
                "2",
            ],
            "seeds below 2^64",
        ),
        (
            &["--trace", "huge.tsv"],
            "(limit 1000000); increase block, or scale the trace",
        ),
    ] {
        sim(&folder, arguments).failed(2, &[says]);
    }
}

#[test]
fn simulation_with_short_lived_workers_gives_up() {
    let folder = Folder::new();
    folder.write("three.toml", WORKLOAD);
    let arguments = [
        "--workload",
        "three.toml",
        "--worker-mean",
        "2s",
        "--worker-return",
        "1s",
    ];
    sim(&folder, &arguments).failed(
        1,
        &["no progress at", "a machine is lost after 2s on average"],
    );
}

#[test]
fn results_list_every_job_of_every_run() {
    let folder = Folder::new();
    folder.write("three.toml", WORKLOAD);
    let arguments = [
        "--workload",
        "three.toml",
        "--scheduler",
        "fifo,hfsp",
        "--runs",
        "2",
        "--results",
    ];
    for file in ["jobs.csv", "jobs.jsonl"] {
        sim(&folder, &[&arguments[..], &[file]].concat()).succeeded();
    }
    let csv = fs::read_to_string(folder.path("jobs.csv")).expect("a table");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 2 * 2 * 3, "{csv}");
    let names: Vec<&str> = lines[0].split(',').collect();
    let value = |line: usize, name: &str| {
        let column = names
            .iter()
            .position(|known| *known == name)
            .expect("a column");
        lines[line].split(',').nth(column).expect("a value")
    };
    assert_eq!(
        (value(1, "scheduler"), value(1, "policy"), value(1, "seed")),
        ("fifo", "fifo", "0")
    );
    assert_eq!(
        (
            value(12, "scheduler"),
            value(12, "policy"),
            value(12, "seed")
        ),
        ("hfsp", "hfsp", "1")
    );
    for name in [
        "job",
        "class",
        "ending",
        "submitted",
        "started",
        "ended",
        "sojourn",
        "alone",
        "run_makespan",
    ] {
        assert!(names.contains(&name), "{name}: {csv}");
    }
    let text = fs::read_to_string(folder.path("jobs.jsonl")).expect("lines");
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(rows.len(), 12);
    let long = rows
        .iter()
        .find(|row| row["job"] == "long")
        .expect("a long one");
    let number = |field: &str| long[field].as_f64().expect("a number");
    assert_eq!(
        (long["maps"].as_u64(), long["reduces"].as_u64()),
        (Some(9), Some(2))
    );
    assert_eq!(number("sojourn"), number("ended") - number("submitted"));
    sim(&folder, &[&arguments[..], &["nowhere/jobs.csv"]].concat())
        .failed(1, &["cannot write nowhere/jobs.csv"]);
}

#[test]
fn trace_is_cut_and_scaled() {
    let folder = Folder::new();
    let trace = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/traces/FB-2009_samples_24_times_1hr_0_first50jobs.tsv"
    );
    let said = sim(
        &folder,
        &[
            "--trace",
            trace,
            "--trace-nodes",
            "600",
            "--nodes",
            "60",
            "--jobs",
            "30",
        ],
    )
    .succeeded();
    assert!(
        said.stdout.contains("30 jobs on 60 nodes"),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains("\nsmall"), "{}", said.stdout);
}

#[test]
fn invalid_arguments_are_named() {
    let folder = Folder::new();
    folder.write("three.toml", WORKLOAD);
    folder.write("bad.tsv", "job0\t1\t1\t10\t0\t5\njob1\t2\tx\t10\t0\t5\n");
    folder.write(
        "bad.toml",
        "[[job]]\nname = \"a\"\nmaps = { count = -1, seconds = 1 }\n",
    );
    folder.write(
        "queues.toml",
        "[[scheduler.capacity.queue]]\nname = \"a\"\nguaranteed-percent = 120\n",
    );
    folder.write("rules", "when tim >= 5s do kill(long)\n");
    for (arguments, status, says) in [
        (
            &["--workload", "three.toml", "--scheduler", "fare"][..],
            2,
            "no scheduler \"fare\"; allowed: fifo, fair",
        ),
        (&["--workload", "nothing.toml"], 2, "nothing.toml"),
        (&["--trace", "bad.tsv"], 2, "bad.tsv"),
        (&["--workload", "bad.toml"], 2, "bad.toml"),
        (
            &["--workload", "three.toml", "--nodes", "0"],
            2,
            "--nodes 0",
        ),
        (&["--workload", "three.toml", "--runs", "0"], 2, "--runs 0"),
        (
            &[
                "--workload",
                "three.toml",
                "--scheduler",
                "capacity",
                "--configuration",
                "queues.toml",
            ],
            2,
            "120",
        ),
        (
            &[
                "--workload",
                "three.toml",
                "--scheduler",
                "trigger",
                "--rules",
                "rules",
            ],
            2,
            "line 1, column 6",
        ),
        (
            &["--workload", "three.toml", "--events", "no/where"],
            1,
            "no/where",
        ),
        (
            &["--workload", "three.toml", "--worker-mean", "10s"],
            2,
            "--worker-return",
        ),
        (&[], 2, "--trace"),
    ] {
        sim(&folder, arguments).failed(status, &[says]);
    }
    let line = sim(&folder, &["--trace", "bad.tsv"]);
    line.failed(2, &["bad.tsv", "2", "8"]);
}

#[test]
fn policy_by_bytes_without_output_bytes_is_refused() {
    let folder = Folder::new();
    folder.write("three.toml", WORKLOAD);
    let arguments = ["--workload", "three.toml", "--scheduler", "fcs"];
    sim(&folder, &arguments).failed(2, &["by which fcs schedules reduces", "give output-bytes"]);
    let bytes = WORKLOAD.replace("maps = { count", "maps = { output-bytes = 1000, count");
    folder.write("three.toml", bytes);
    sim(&folder, &arguments).succeeded();
}

#[test]
fn simulation_with_until_is_cut_off() {
    let folder = Folder::new();
    folder.write("three.toml", WORKLOAD);
    let said = sim(&folder, &["--workload", "three.toml", "--until", "5s"])
        .succeeded()
        .stdout;
    let end = "\nfifo: 1 job that was submitted did not end: long\n\nfifo: 2 of 3 jobs were not submitted by then\n";
    assert!(said.ends_with(end), "{said}");
}

#[test]
fn configurations_and_primitives_multiply_with_policies() {
    let folder = Folder::new();
    folder.write("three.toml", WORKLOAD);
    folder.write("eager.toml", "[scheduler.hfsp]\nsample-maps = 1\n");
    folder.write("calm.toml", "[preemption]\nsuspended-max = 1\n");
    let arguments = [
        "--workload",
        "three.toml",
        "--scheduler",
        "hfsp",
        "--scheduler",
        "fifo",
        "--runs",
        "2",
    ];
    let files = [
        "--configuration",
        "eager.toml",
        "--configuration",
        "calm.toml",
        "--primitive",
        "kill,suspend",
    ];
    let said = sim(
        &folder,
        &[&arguments[..], &files, &["--format", "json"]].concat(),
    )
    .succeeded()
    .stdout;
    let said: Value = serde_json::from_str(&said).expect("JSON");
    let variants = said["schedulers"].as_array().expect("a list");
    let labels: Vec<&str> = variants
        .iter()
        .filter_map(|one| one["label"].as_str())
        .collect();
    let of = |policy: &str| {
        ["eager.toml", "calm.toml"]
            .map(|file| ["kill", "suspend"].map(|how| format!("{policy} {how} {file}")))
    };
    assert_eq!(
        labels,
        [of("hfsp"), of("fifo")].as_flattened().as_flattened()
    );
    assert_eq!(
        (&variants[0]["scheduler"], &variants[7]["scheduler"]),
        (&"hfsp".into(), &"fifo".into())
    );
    let ratio = |place: usize| {
        variants[place]["paired"]["sojourn_mean"]["mean"]
            .as_f64()
            .expect("a ratio")
    };
    assert_eq!(ratio(0), 1.0, "over itself");
    let mean = |place: usize| {
        variants[place]["runs"][0]["sojourn"]["mean"]
            .as_f64()
            .expect("a mean")
    };
    assert!((ratio(4) > 1.0) == (mean(4) > mean(0)), "{said}");
    let text = sim(&folder, &[&arguments[..], &files].concat())
        .succeeded()
        .stdout;
    assert!(
        text.contains("/ hfsp kill eager.toml") && text.contains("did not end"),
        "{text}"
    );
    let missing = [
        "--configuration",
        "eager.toml",
        "--configuration",
        "no.toml",
    ];
    sim(&folder, &[&arguments[..], &missing].concat()).failed(2, &["cannot read no.toml"]);
}

#[test]
fn baselines_are_compared_and_every_run_is_plotted() {
    let folder = Folder::new();
    folder.write("three.toml", WORKLOAD);
    let arguments = [
        "--workload",
        "three.toml",
        "--scheduler",
        "fifo",
        "--baseline",
        "ps,srpt,sjf",
    ];
    let more = ["--runs", "2", "--plot", "figures"];
    let text = sim(&folder, &[&arguments[..], &more].concat())
        .succeeded()
        .stdout;
    for label in ["ps (theory)", "srpt (theory)", "sjf (theory)"] {
        assert!(text.contains(label), "{label}: {text}");
    }
    let mut drawn: Vec<_> = fs::read_dir(folder.path("figures"))
        .expect("listed")
        .map(|one| one.expect("one").file_name())
        .collect();
    drawn.sort();
    let names = [
        "slots-fifo-seed-0-map",
        "slots-fifo-seed-0-reduce",
        "slots-fifo-seed-1-map",
        "slots-fifo-seed-1-reduce",
    ];
    let expected: Vec<String> = names
        .iter()
        .chain(&["sojourn"])
        .map(|name| format!("{name}.svg"))
        .collect();
    assert_eq!(
        drawn,
        expected
            .iter()
            .map(std::ffi::OsString::from)
            .collect::<Vec<_>>()
    );
    let said = sim(&folder, &[&arguments[..], &["--format", "json"]].concat())
        .succeeded()
        .stdout;
    let said: Value = serde_json::from_str(&said).expect("JSON");
    let mean = |place: usize| {
        said["schedulers"][place]["runs"][0]["sojourn"]["mean"]
            .as_f64()
            .expect("a mean")
    };
    assert!(
        mean(2) <= mean(0),
        "who knows all and divides at will is no worse than FIFO: {said}"
    );
    sim(&folder, &["--workload", "three.toml", "--baseline", "las"])
        .failed(2, &["there is no baseline \"las\""]);
}
