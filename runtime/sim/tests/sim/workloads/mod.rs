//! Workload files and the published mixes: draws and validation.

mod numbers;
mod systems;

use napreduce_engine::{Fifo, Slots, Span, TaskKind, Time};
use napreduce_sim::metrics::RunSummary;
use napreduce_sim::{
    PUBLISHED, Run, SimulatedJob, Simulation, SimulationSettings, WorkloadFile, published,
};

fn read(text: &str) -> WorkloadFile {
    WorkloadFile::read("day.toml", text).expect("the file is valid")
}

fn refused(text: &str) -> String {
    WorkloadFile::read("day.toml", text)
        .expect_err("the file is invalid")
        .to_string()
}

fn jobs(name: &str, seed: u64) -> Vec<SimulatedJob> {
    let file = published(name)
        .expect("the mix is published")
        .expect("the mix is valid");
    file.workload(seed).into_jobs()
}

fn run(file: &WorkloadFile, seed: u64) -> Run {
    let cluster = file.cluster.expect("the mix has a cluster");
    let mut settings = cluster.settings(cluster.machines);
    settings.overheads = file.overheads;
    Simulation::new(Box::new(Fifo::default()), settings, file.workload(seed))
        .run()
        .expect("the run ends")
}

#[test]
fn file_defines_all_job_attributes() {
    let file = read(
        r#"
        seed = 7
        [[job]]
        name = "report"
        submit = "90s"
        repeat = 3
        arrivals = { fixed = 10 }
        user = "ada"
        queue = "production"
        priority = 2
        deadline = "5m"
        slowstart = 0.25
        attempts-max = 2
        memory = 1000
        maps = { count = 4, seconds = 2.5, bytes = 100, output-bytes = 50 }
        reduces = { count = 2, shuffle-seconds = 1, seconds = { uniform = [3, 5] } }
        "#,
    );
    let jobs = file.workload(file.seed).into_jobs();
    let names: Vec<&str> = jobs.iter().map(|job| &*job.name).collect();
    assert_eq!(names, ["report-1", "report-2", "report-3"]);
    let submits: Vec<u64> = jobs.iter().map(|job| job.submit.0 / 1_000_000).collect();
    assert_eq!(submits, [90, 100, 110]);
    let job = &jobs[1];
    assert_eq!(
        (&*job.user, &*job.queue, &*job.class, job.priority),
        ("ada", "production", "report", 2)
    );
    assert_eq!(
        (job.deadline, job.slowstart_permille),
        (Some(Span::from_secs(300)), 250)
    );
    assert_eq!((job.attempts_max, job.memory, job.maps.len()), (2, 1000, 4));
    assert_eq!(
        (job.maps[3].work, job.maps[3].bytes),
        (Span::from_millis(2500), 100)
    );
    assert_eq!(
        (job.reduces[0].shuffle, job.reduces[0].bytes),
        (Span::from_secs(1), 100)
    );
    assert!((3_000_000..=5_000_000).contains(&job.reduces[1].reduce.0));
    assert_ne!(
        jobs[0].reduces, jobs[1].reduces,
        "each job has its own draws"
    );
}

#[test]
fn draws_depend_on_seed() {
    assert_eq!(jobs("hfsp-fb-dataset", 4), jobs("hfsp-fb-dataset", 4));
    assert_ne!(jobs("hfsp-fb-dataset", 4), jobs("hfsp-fb-dataset", 5));
}

#[test]
fn triggered_job_waits_for_trigger() {
    let file =
        read("[[job]]\nname = \"high\"\nsubmit = \"trigger\"\nmaps = { count = 1, seconds = 1 }\n");
    let settings = SimulationSettings::new(1, Slots { map: 1, reduce: 1 });
    let run = Simulation::new(Box::new(Fifo::default()), settings, file.workload(0))
        .run()
        .expect("the run ends");
    assert_eq!(run.never_submitted, ["high"]);
}

#[test]
fn errors_name_job_and_field() {
    let job = |rest: &str| {
        format!("[[job]]\nname = \"a\"\n{rest}\nmaps = {{ count = 1, seconds = 1 }}\n")
    };
    assert_eq!(
        refused(&job("slowstart = 2")),
        "day.toml: job \"a\", slowstart: invalid fraction 2; give 0 to 1"
    );
    assert!(
        refused(&job("submit = \"soon\""))
            .contains("job \"a\", submit: invalid time span \"soon\"")
    );
    assert!(refused(&job("submit = \"trigger\"\nrepeat = 2")).contains("cannot be repeated"));
    assert!(refused(&job("attempts-max = 0")).contains("attempts-max: must be positive"));
    assert!(
        refused(&job("arrivals = { poisson = -1 }"))
            .contains("job \"a\", arrivals: invalid number -1")
    );
    assert!(refused(&format!("{0}{0}", job(""))).contains("duplicate name"));
    let colour = refused(&job("colour = 1"));
    assert!(
        colour.contains("line 3, column 1") && colour.contains("unknown field `colour`"),
        "{colour}"
    );
    let seconds = refused("[[job]]\nname = \"a\"\nmaps = { count = 1, seconds = \"long\" }\n");
    assert!(
        seconds.contains("expected a number, or a distribution such as"),
        "{seconds}"
    );
    let uniform =
        refused("[[job]]\nname = \"a\"\nmaps = { count = 1, seconds = { uniform = [3, 1] } }\n");
    assert_eq!(
        uniform,
        "day.toml: job \"a\", maps.seconds: invalid range: 3 is above 1; give the smaller one first"
    );
    assert!(
        refused("[[job]]\nname = \"a\"\nmaps = { count = 1e9, seconds = 1 }\n")
            .contains("too many tasks")
    );
    let cluster = "cluster = { machines = 0, map-slots = 1, reduce-slots = 1 }";
    assert_eq!(
        refused(cluster),
        "day.toml: cluster.machines: must be positive"
    );
}

#[test]
fn published_mixes_parse_and_have_clusters() {
    for mix in PUBLISHED {
        let file = WorkloadFile::read(mix.name, mix.text).expect("the mix is valid");
        assert!(
            file.cluster.is_some() && !file.about.is_empty(),
            "{}",
            mix.name
        );
    }
    assert!(published("unheard-of").is_none());
}

#[test]
fn replicas_place_inputs_without_other_changes() {
    let text = |replicas: &str| {
        format!(
            "{replicas}cluster = {{ machines = 5, map-slots = 1, reduce-slots = 1 }}\n[[job]]\nname = \"a\"\nrepeat = 3\n\
             maps = {{ count = {{ uniform = [3, 9] }}, seconds = {{ exponential = 4 }} }}\n\
             reduces = {{ count = {{ uniform = [1, 9] }}, seconds = {{ exponential = 4 }} }}\n"
        )
    };
    let without = read(&text("")).workload(3).into_jobs();
    let mut with = read(&text("replicas = 2\n")).workload(3).into_jobs();
    assert_ne!(with, without);
    for map in with.iter_mut().flat_map(|job| &mut job.maps) {
        let machines = std::mem::take(&mut map.preferred);
        assert!(
            machines.len() == 2
                && machines[0] != machines[1]
                && machines.iter().all(|machine| *machine < 5)
        );
    }
    assert_eq!(with, without);
    assert!(refused(&text("replicas = 0\n")).contains("replicas: invalid number 0; give 1 to 100"));
}

#[test]
fn machines_can_be_dedicated_to_one_kind() {
    let text = |apart: u32| {
        format!(
            "cluster = {{ machines = 5, map-machines = {apart}, map-slots = 2, reduce-slots = 3 }}\n[[job]]\nname = \"a\"\n\
             maps = {{ count = 8, seconds = 1 }}\nreduces = {{ count = 9, seconds = 1 }}\n"
        )
    };
    let file = read(&text(2));
    let cluster = file.cluster.expect("the file has a cluster");
    let settings = cluster.settings(cluster.machines);
    assert_eq!(settings.total_slots(), (4, 9));
    let run = Simulation::new(Box::new(Fifo::default()), settings, file.workload(1))
        .run()
        .expect("the run ends");
    // Two waves of maps on four slots, one wave of reduces on nine.
    assert_eq!(
        (run.ended, run.jobs[0].alone),
        (Time(3_000_000), Span::from_secs(3))
    );
    for apart in [0, 5] {
        assert!(
            refused(&text(apart)).contains("cluster.map-machines"),
            "{apart}"
        );
    }
}

#[test]
fn machines_are_spread_over_racks() {
    let text = |racks: &str| {
        format!(
            "replicas = 3\ncluster = {{ machines = 6, map-slots = 1, reduce-slots = 1{racks} }}\n[[job]]\nname = \"a\"\n\
             maps = {{ count = 20, seconds = 1 }}\n"
        )
    };
    assert_eq!(
        read(&text(""))
            .cluster
            .expect("the file has a cluster")
            .racks,
        1
    );
    let file = read(&text(", racks = 3"));
    for map in file.workload(1).into_jobs().remove(0).maps {
        let racks: Vec<u32> = map.preferred.iter().map(|machine| machine % 3).collect();
        assert!(
            racks[0] != racks[1] && racks[1] == racks[2],
            "{:?}",
            map.preferred
        );
    }
    for racks in [0, 7] {
        let refused = refused(&text(&format!(", racks = {racks}")));
        assert!(
            refused.contains(&format!(
                "cluster.racks: invalid number of racks {racks} for 6 machines; give 1 to 6"
            )),
            "{refused}"
        );
    }
}

#[test]
fn fcs_mixes_match_published_tables() {
    for (name, reduces) in [("fcs-map-heavy", 1_450), ("fcs-reduce-heavy", 5_492)] {
        let jobs = jobs(name, 1);
        let total = |kind| jobs.iter().map(|job| job.tasks(kind)).sum::<usize>();
        assert_eq!((jobs.len(), total(TaskKind::Map)), (171, 137_800), "{name}");
        assert_eq!(total(TaskKind::Reduce), reduces, "{name}");
        let last = jobs
            .iter()
            .map(|job| job.submit)
            .max()
            .expect("the mix has jobs");
        assert!(
            (Time(3_500_000_000)..Time(7_000_000_000)).contains(&last),
            "{name}: {last}"
        );
    }
}

#[test]
fn fb_dataset_has_published_classes() {
    let jobs = jobs("hfsp-fb-dataset", 2);
    let of = |class: &str| jobs.iter().filter(|job| &*job.class == class).count();
    assert_eq!((of("small"), of("medium"), of("large")), (53, 41, 6));
    let large = |job: &&SimulatedJob| job.reduces.len() == 1000 && job.maps.len() == 200;
    assert_eq!(jobs.iter().filter(large).count(), 1);
    for job in jobs.iter().filter(|job| &*job.class == "medium") {
        assert!(
            (5..=500).contains(&job.maps.len()) && job.reduces.len() <= 100,
            "{}",
            job.name
        );
    }
}

#[test]
fn natjam_jobs_match_published_times() {
    let file = published("natjam-xl-s")
        .expect("the mix is published")
        .expect("the mix is valid");
    let run = run(&file, 1);
    let alone = |name: &str| run.job(name).expect("the job ran").alone.0 as f64 / 1e6;
    assert!(
        (alone("research-xl") - 192.3).abs() < 10.0,
        "{}",
        alone("research-xl")
    );
    assert!(
        (alone("production-s") - 70.4).abs() < 7.0,
        "{}",
        alone("production-s")
    );
    let deadlines = published("natjam-deadlines")
        .expect("the mix is published")
        .expect("the mix is valid");
    let job = deadlines.workload(1).into_jobs().remove(0);
    let cluster = deadlines.cluster.expect("the mix has a cluster");
    let mut settings = cluster.settings(cluster.machines);
    settings.overheads = deadlines.overheads;
    assert!((napreduce_sim::alone(&job, &settings).0 as f64 / 1e6 - 87.0).abs() < 1.0);
}

#[test]
fn summary_counts_jobs() {
    let file = read(
        "arrivals = { burst = { size = 2, every = 100 } }\n[[job]]\nname = \"a\"\nrepeat = 2\ndeadline = \"15s\"\n\
         maps = { count = 1, seconds = 10 }\n",
    );
    let settings = SimulationSettings::new(1, Slots { map: 1, reduce: 1 });
    let run = Simulation::new(Box::new(Fifo::default()), settings, file.workload(0))
        .run()
        .expect("the run ends");
    let summary = RunSummary::new(&run);
    assert_eq!(
        (summary.jobs, summary.sojourn.mean, summary.sojourn.max),
        (2, 15.0, 20.0)
    );
    assert_eq!(
        (summary.slowdown.mean, summary.makespan, summary.missed),
        (1.5, 20.0, 1)
    );
    assert_eq!((summary.utilisation, summary.deadlines), ([1.0, 0.0], 2));
    assert_eq!(summary.classes["a"].jobs, 2);
    let text = serde_json::to_string(&summary).expect("plain data serializes");
    assert_eq!(
        serde_json::from_str::<RunSummary>(&text).expect("the summary is valid"),
        summary
    );
}
