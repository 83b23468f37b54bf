//! What a file says of the system it is meant for: containers, overheads by name, deadlines by the
//! time alone.
//!
//! Owns what is read and what is refused. Does not own what a simulation makes of it.

use super::*;
use napreduce_sim::OverheadPreset;

const JOB: &str =
    "[[job]]\nname = \"a\"\nmaps = { count = 2, seconds = 10 }\nreduces = { count = 1, seconds = 5 }\n";

fn with(head: &str) -> String {
    format!("{head}\n{JOB}")
}

#[test]
fn a_cluster_may_have_containers() {
    let file =
        read(&with("cluster = { machines = 2, containers = 3, masters-max = 1 }\noverheads = \"yarn-0.23\""));
    let cluster = file.cluster.expect("a cluster");
    let settings = cluster.settings(cluster.machines);
    assert_eq!((settings.masters_max, settings.slots), (Some(1), Slots { map: 3, reduce: 3 }));
    // A master, a map and a reduce start in 2.63 s each.
    let run = run(&file, 1);
    assert_eq!(
        (run.jobs[0].sojourn(), run.jobs[0].alone),
        (Span::from_millis(22_890), Span::from_millis(22_890))
    );
}

#[test]
fn containers_that_make_no_sense_are_refused() {
    let refused = |cluster: &str| refused(&with(&format!("cluster = {{ {cluster} }}")));
    let both = refused("machines = 2, containers = 3, map-slots = 1");
    assert!(
        both.contains("cluster.containers: containers are for tasks of both kinds; leave out map-slots"),
        "{both}"
    );
    assert!(refused("machines = 1, containers = 1").contains("a master and a task need 2 containers"));
    assert!(refused("machines = 2").contains("cluster.map-slots: no slots"));
    assert!(
        refused("machines = 2, map-slots = 1, masters-max = 1")
            .contains("jobs have masters in containers alone")
    );
    assert!(
        refused("machines = 2, containers = 2, masters-max = 0")
            .contains("cluster.masters-max: 0; a job needs its master")
    );
}

#[test]
fn overheads_have_names_and_a_table_may_change_some_of_them() {
    for preset in OverheadPreset::ALL {
        let named = read(&with(&format!("overheads = \"{preset}\"")));
        assert_eq!(named.overheads, preset.overheads());
    }
    let changed = read(&with("[overheads]\npreset = \"hadoop-1\"\nlaunch = \"1s\""));
    let launch = Span::from_secs(1);
    assert_eq!(changed.overheads, napreduce_sim::Overheads { launch, ..OverheadPreset::Hadoop1.overheads() });
    let unknown = refused(&with("overheads = \"hadoop-9\""));
    assert!(
        unknown.contains("no overheads of the name \"hadoop-9\"; give hadoop-1 or yarn-0.23"),
        "{unknown}"
    );
    assert!(refused(&with("[overheads]\npreset = 7")).contains("preset is a name"));
    assert!(refused(&with("[overheads]\npreset = \"hadoop-1\"\nluanch = \"1s\"")).contains("luanch"));
}

#[test]
fn a_deadline_may_be_a_share_more_than_the_time_alone() {
    let cluster = "cluster = { machines = 1, map-slots = 1, reduce-slots = 1 }";
    let text = |laxity: &str, more: &str| {
        format!(
            "{cluster}\n[[job]]\nname = \"a\"\nrepeat = 200\nlaxity = {laxity}\n{more}maps = {{ count = 2, seconds = 10 }}\n"
        )
    };
    let deadlines = |laxity: &str| -> Vec<f64> {
        let jobs = read(&text(laxity, "")).workload(3).into_jobs();
        jobs.iter().map(|job| job.deadline.expect("each has one").0 as f64 / 1e6).collect()
    };
    assert!(deadlines("0.5").iter().all(|deadline| *deadline == 30.0));
    let drawn = deadlines("{ uniform = [0, 2] }");
    let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
    assert!(
        drawn.iter().all(|deadline| (20.0..60.0).contains(deadline)) && (mean - 40.0).abs() < 2.0,
        "{mean}"
    );
    assert_eq!(drawn, deadlines("{ uniform = [0, 2] }"));
    assert!(refused(&text("1", "deadline = \"9s\"\n")).contains("give deadline or laxity"));
    assert!(refused(&text("-1", "")).contains("laxity: -1 is not allowed"));
    assert!(refused(&text("1", "").replace(cluster, "")).contains("laxity: it is a share of the time alone"));
}

#[test]
fn partitions_may_be_unequal_and_their_work_goes_by_their_bytes() {
    let text = |skew: &str| {
        format!(
            "[[job]]\nname = \"a\"\nmaps = {{ count = 4, seconds = 1, output-bytes = 3000 }}\n\
             reduces = {{ count = 3, shuffle-seconds = 6, seconds = 12{skew} }}\n"
        )
    };
    let equal = read(&text("")).workload(1).into_jobs().remove(0);
    let mut zipf = read(&text(", skew = { zipf = 1 }")).workload(1).into_jobs().remove(0);
    assert_eq!(zipf.maps, equal.maps);
    zipf.reduces.sort_by_key(|reduce| std::cmp::Reverse(reduce.bytes));
    // 1, 1/2 and 1/3 of the largest: 6, 3 and 2 elevenths of all.
    let bytes: Vec<u64> = zipf.reduces.iter().map(|reduce| reduce.bytes).collect();
    assert_eq!(bytes, [6545, 3273, 2182]);
    for reduce in &zipf.reduces {
        let expected = 18e6 * reduce.bytes as f64 / 4000.0;
        assert!((reduce.work().0 as f64 - expected).abs() < 4000.0, "{reduce:?}");
    }
    let work = |job: &SimulatedJob| job.work(TaskKind::Reduce).0;
    assert!(work(&zipf).abs_diff(work(&equal)) < 5);
    assert!(
        refused(&text(", skew = { zipf = -1 }"))
            .contains("reduces.skew: zipf = -1; give an exponent from 0 to 10")
    );
    assert!(refused(&text(", skew = { pareto = 0 }")).contains("give a shape from 0.1 to 100"));
}

#[test]
fn a_machine_without_bandwidth_and_a_progress_that_makes_no_sense_are_refused() {
    let none = refused(&with("[overheads]\nmachine-bandwidth = { disk = 0 }"));
    assert!(none.contains("overheads.machine-bandwidth: 0 bytes a second move nothing"), "{none}");
    assert!(
        refused(&with("progress = { exponent = 0 }"))
            .contains("progress: exponent = 0; give a number from 0.01")
    );
    assert!(
        refused(&with("progress = { error = 2 }")).contains("progress: error = 2; give a share from 0 to 1")
    );
    assert_eq!(read(&with("progress = { error = 0.5 }")).progress.error, 0.5);
}
