//! `nap lab replay` on real clusters: a few jobs of two or three seconds, and errors before any job runs. The
//! agreement of live and simulated runs is not tested, since it needs an idle machine.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::stand_ins::{Ended, Lab};

/// Four jobs of ten to thirty seconds, scaled down to a tenth.
const WORKLOAD: &str = r#"
seed = 7
cluster = { machines = 2, map-slots = 2, reduce-slots = 1 }

[[job]]
name = "long"
queue = "research"
maps = { count = 2, seconds = { uniform = [2, 3] }, bytes = 1000, output-bytes = 1000 }
reduces = { count = 2, shuffle-seconds = 1, seconds = { uniform = [8, 10] } }

[[job]]
name = "urgent"
queue = "production"
submit = "6s"
priority = 1
deadline = "30s"
user = "ada"
maps = { count = 2, seconds = 2, bytes = 1000, output-bytes = 1000 }
reduces = { count = 2, seconds = 3 }

[[job]]
name = "maps"
queue = "research"
submit = "8s"
repeat = 2
arrivals = { fixed = 2 }
maps = { count = 3, seconds = 1.5 }
"#;

/// A lab with the workload in `jobs.toml`.
fn lab() -> Lab {
    let lab = Lab::new();
    fs::write(lab.path("jobs.toml"), WORKLOAD).unwrap();
    lab
}

fn replay(lab: &Lab, arguments: &[&str]) -> Ended {
    lab.run(&[&["replay"], arguments].concat())
}

fn number(row: &Value, name: &str) -> f64 {
    row[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} of {row}"))
}

/// Costs, so that none has to be measured.
const GIVEN: [&str; 10] = [
    "--launch",
    "8ms",
    "--suspend",
    "2ms",
    "--resume",
    "2ms",
    "--checkpoint-write",
    "20ms",
    "--checkpoint-read",
    "10ms",
];

#[test]
fn small_workload_runs_live_with_a_row_for_each_job() {
    let lab = lab();
    let jobs = lab.name("jobs.toml");
    let report = lab.name("report");
    let mut arguments = vec![&*jobs, "--time-scale", "10", "--scheduler", "natjam,fifo"];
    arguments.extend(["--primitive", "suspend", "--report", &report]);
    arguments.extend(GIVEN);
    let output = replay(&lab, &arguments);
    let all = output.text();
    // A busy machine submits jobs too late. The report states this, and it is not an error of the replay.
    let late = all.contains("TOO LATE");
    assert_eq!(output.status, i32::from(late), "{all}");
    assert!(
        all.contains("outputs right") && !all.contains("DIFFER"),
        "{all}"
    );
    assert!(
        all.contains("natjam.preemptor-interval = \"1s\" -> \"100ms\""),
        "{all}"
    );
    assert!(late || all.contains("natjam: live"), "{all}");
    let rows = lab.rows("report/jobs.jsonl");
    let names = |scheduler: &str| {
        let of_it = rows.iter().filter(|row| row["scheduler"] == scheduler);
        of_it
            .map(|row| row["job"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("natjam"), ["long", "urgent", "maps-1", "maps-2"]);
    assert_eq!(names("fifo"), names("natjam"));
    for row in &rows {
        assert!(
            row["identical"] == true && row["ending"] == "Succeeded" && row["seed"] == 7,
            "{row}"
        );
        assert!(
            number(row, "late") >= 0.0 && number(row, "sojourn") > 0.0,
            "{row}"
        );
        // No job ends sooner than its longest task.
        assert!(
            number(row, "sojourn") > 0.14 && number(row, "simulated") > 0.14,
            "{row}"
        );
        assert!(number(row, "started") <= number(row, "ended"), "{row}");
        assert_eq!(row["reduce_wait"].is_null(), row["reduces"] == 0, "{row}");
    }
    let of = |scheduler: &str, job: &str| {
        rows.iter()
            .find(|row| row["scheduler"] == scheduler && row["job"] == job)
            .unwrap()
    };
    assert!(
        number(of("natjam", "long"), "suspends") >= 1.0,
        "urgent takes a slot of long"
    );
    assert!(
        number(of("fifo", "urgent"), "reduce_wait") > number(of("natjam", "urgent"), "reduce_wait")
    );
    let due = number(of("fifo", "urgent"), "deadline") - number(of("fifo", "urgent"), "submitted");
    assert!((due - 3.0).abs() < 1e-6, "{due}");
    let table = fs::read_to_string(lab.path("report/jobs.csv")).unwrap();
    assert_eq!(table.lines().count(), rows.len() + 1);
    assert!(
        table.starts_with("scheduler,seed,job,class,ending,submitted,started,ended,sojourn"),
        "{table}"
    );
    lab.assert_work_is_empty();
    let again = replay(&lab, &arguments);
    assert_eq!(again.status, 2, "{}", again.text());
    assert!(
        again.text().contains("has a report already"),
        "{}",
        again.text()
    );
}

#[test]
fn bodies_do_not_change_outputs() {
    let lab = lab();
    let text = "cluster = { machines = 1, map-slots = 2, reduce-slots = 1 }\n[[job]]\nname = \"one\"\nmemory = 4000000\n\
                maps = { count = 2, seconds = 3, bytes = 400000, output-bytes = 4000 }\n\
                reduces = { count = 1, seconds = 3 }\n";
    fs::write(lab.path("one.toml"), text).unwrap();
    for body in ["cpu", "io", "fill"] {
        let jobs = lab.name("one.toml");
        let report = lab.name(body);
        let mut arguments = vec![
            &*jobs,
            "--time-scale",
            "10",
            "--body",
            body,
            "--report",
            &report,
        ];
        arguments.extend(GIVEN);
        let output = replay(&lab, &arguments);
        assert!(
            output.text().contains("outputs right"),
            "{body}: {}",
            output.text()
        );
        let rows = lab.rows(&format!("{body}/jobs.jsonl"));
        assert_eq!(rows.len(), 1);
        // A map and a reduce of 0.3 s each, one after the other.
        assert!(number(&rows[0], "sojourn") > 0.55, "{body}: {rows:?}");
    }
}

#[test]
fn invalid_arguments_fail_before_anything_runs() {
    let lab = lab();
    let jobs = lab.name("jobs.toml");
    fs::write(lab.path("broken.toml"), "[[job]]\nname = 3\n").unwrap();
    fs::write(lab.path("empty.tsv"), "").unwrap();
    let broken = lab.name("broken.toml");
    let empty = lab.name("empty.tsv");
    for (arguments, says) in [
        (
            &[&*jobs, "--time-scale", "100"][..],
            "too short to be measured (100 ms)",
        ),
        (&[&*jobs, "--time-scale", "0"], "invalid --time-scale 0"),
        (&[&*jobs, "--task-scale", "nan"], "--task-scale NaN"),
        (&["no-such-mix"], "cannot read no-such-mix"),
        (&[&*broken], "broken.toml"),
        (&["--trace", &empty], "is empty"),
        (&[&*jobs, "--scheduler", "nap"], "nap"),
        (
            &[&*jobs, "--body", "nap"],
            "possible values: sleep, cpu, io, fill",
        ),
        (
            &[&*jobs, "--primitive", "nap"],
            "choose from wait, kill, suspend, checkpoint",
        ),
        (
            &[&*jobs, "--configuration", "/nowhere"],
            "cannot read /nowhere",
        ),
        (&[], "FILE|NAME"),
    ] {
        let output = replay(&lab, arguments);
        assert!(
            matches!(output.status, 1 | 2),
            "{arguments:?}: {}",
            output.text()
        );
        assert!(
            output.text().contains(says),
            "{arguments:?}: {}",
            output.text()
        );
    }
    lab.assert_work_is_empty();
    assert!(!Path::new("no-such-mix").exists());
}
