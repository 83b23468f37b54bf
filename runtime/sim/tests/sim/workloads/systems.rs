//! The system in workload files: containers, named overheads, laxities, skew and bandwidth.

use super::*;
use napreduce_sim::OverheadPreset;

const JOB: &str = "[[job]]\nname = \"a\"\nmaps = { count = 2, seconds = 10 }\nreduces = { count = 1, seconds = 5 }\n";

fn with(head: &str) -> String {
    format!("{head}\n{JOB}")
}

#[test]
fn cluster_can_have_containers() {
    let file = read(&with(
        "cluster = { machines = 2, containers = 3, masters-max = 1 }\noverheads = \"yarn-0.23\"",
    ));
    let cluster = file.cluster.expect("the file has a cluster");
    let settings = cluster.settings(cluster.machines);
    assert_eq!(
        (settings.masters_max, settings.slots),
        (Some(1), Slots { map: 3, reduce: 3 })
    );
    // A master, a map and a reduce take 2.63 s each to start.
    let run = run(&file, 1);
    assert_eq!(
        (run.jobs[0].sojourn(), run.jobs[0].alone),
        (Span::from_millis(22_890), Span::from_millis(22_890))
    );
}

#[test]
fn invalid_containers_are_rejected() {
    let refused = |cluster: &str| refused(&with(&format!("cluster = {{ {cluster} }}")));
    let both = refused("machines = 2, containers = 3, map-slots = 1");
    assert!(
        both.contains("cluster.containers: containers run tasks of both kinds; remove map-slots"),
        "{both}"
    );
    assert!(
        refused("machines = 1, containers = 1")
            .contains("too few containers: a master and a task need 2")
    );
    assert!(refused("machines = 2").contains("cluster.map-slots: no slots"));
    assert!(
        refused("machines = 2, map-slots = 1, masters-max = 1")
            .contains("cluster.masters-max: requires containers")
    );
    assert!(
        refused("machines = 2, containers = 2, masters-max = 0")
            .contains("cluster.masters-max: must be positive: every job needs a master")
    );
}

#[test]
fn named_overheads_can_be_overridden() {
    for preset in OverheadPreset::ALL {
        let named = read(&with(&format!("overheads = \"{preset}\"")));
        assert_eq!(named.overheads, preset.overheads());
    }
    let changed = read(&with("[overheads]\npreset = \"hadoop-1\"\nlaunch = \"1s\""));
    let launch = Span::from_secs(1);
    assert_eq!(
        changed.overheads,
        napreduce_sim::Overheads {
            launch,
            ..OverheadPreset::Hadoop1.overheads()
        }
    );
    let unknown = refused(&with("overheads = \"hadoop-9\""));
    assert!(
        unknown.contains("unknown overheads \"hadoop-9\"; give hadoop-1 or yarn-0.23"),
        "{unknown}"
    );
    assert!(refused(&with("[overheads]\npreset = 7")).contains("preset must be a string"));
    assert!(
        refused(&with("[overheads]\npreset = \"hadoop-1\"\nluanch = \"1s\"")).contains("luanch")
    );
}

#[test]
fn laxity_sets_deadline_relative_to_time_alone() {
    let cluster = "cluster = { machines = 1, map-slots = 1, reduce-slots = 1 }";
    let text = |laxity: &str, more: &str| {
        format!(
            "{cluster}\n[[job]]\nname = \"a\"\nrepeat = 200\nlaxity = {laxity}\n{more}maps = {{ count = 2, seconds = 10 }}\n"
        )
    };
    let deadlines = |laxity: &str| -> Vec<f64> {
        let jobs = read(&text(laxity, "")).workload(3).into_jobs();
        jobs.iter()
            .map(|job| job.deadline.expect("every job has a deadline").0 as f64 / 1e6)
            .collect()
    };
    assert!(deadlines("0.5").iter().all(|deadline| *deadline == 30.0));
    let drawn = deadlines("{ uniform = [0, 2] }");
    let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
    assert!(
        drawn.iter().all(|deadline| (20.0..60.0).contains(deadline)) && (mean - 40.0).abs() < 2.0,
        "{mean}"
    );
    assert_eq!(drawn, deadlines("{ uniform = [0, 2] }"));
    assert!(refused(&text("1", "deadline = \"9s\"\n")).contains("set either deadline or laxity"));
    assert!(refused(&text("-1", "")).contains("laxity: invalid number -1"));
    assert!(
        refused(&text("1", "").replace(cluster, ""))
            .contains("laxity: laxity is relative to the run time")
    );
}

#[test]
fn skewed_partitions_scale_work_with_bytes() {
    let text = |skew: &str| {
        format!(
            "[[job]]\nname = \"a\"\nmaps = {{ count = 4, seconds = 1, output-bytes = 3000 }}\n\
             reduces = {{ count = 3, shuffle-seconds = 6, seconds = 12{skew} }}\n"
        )
    };
    let equal = read(&text("")).workload(1).into_jobs().remove(0);
    let mut zipf = read(&text(", skew = { zipf = 1 }"))
        .workload(1)
        .into_jobs()
        .remove(0);
    assert_eq!(zipf.maps, equal.maps);
    zipf.reduces
        .sort_by_key(|reduce| std::cmp::Reverse(reduce.bytes));
    // Sizes 1, 1/2 and 1/3 relative to the largest: 6, 3 and 2 elevenths of the total.
    let bytes: Vec<u64> = zipf.reduces.iter().map(|reduce| reduce.bytes).collect();
    assert_eq!(bytes, [6545, 3273, 2182]);
    for reduce in &zipf.reduces {
        let expected = 18e6 * reduce.bytes as f64 / 4000.0;
        assert!(
            (reduce.work().0 as f64 - expected).abs() < 4000.0,
            "{reduce:?}"
        );
    }
    let work = |job: &SimulatedJob| job.work(TaskKind::Reduce).0;
    assert!(work(&zipf).abs_diff(work(&equal)) < 5);
    assert!(
        refused(&text(", skew = { zipf = -1 }"))
            .contains("reduces.skew: invalid zipf exponent -1; give 0 to 10")
    );
    assert!(
        refused(&text(", skew = { pareto = 0 }"))
            .contains("invalid pareto shape 0; give 0.1 to 100")
    );
}

#[test]
fn invalid_bandwidth_and_progress_are_rejected() {
    let none = refused(&with("[overheads]\nmachine-bandwidth = { disk = 0 }"));
    assert!(
        none.contains("overheads.machine-bandwidth: must be positive"),
        "{none}"
    );
    assert!(
        refused(&with("progress = { exponent = 0 }"))
            .contains("progress: invalid exponent 0; give 0.01")
    );
    assert!(
        refused(&with("progress = { error = 2 }"))
            .contains("progress: invalid error 2; give 0 to 1")
    );
    assert_eq!(
        read(&with("progress = { error = 0.5 }")).progress.error,
        0.5
    );
}
