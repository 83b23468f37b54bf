//! The time left of jobs, as `nap job status` shows it on a real cluster, compared with the time they took.

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use napreduce_tests::{Folder, OwnCluster, program, run, wait_until};
use serde_json::Value;

/// A kind of jobs, and how one of them is submitted.
struct Kind {
    name: &'static str,
    scheduler: &'static str,
    /// Milliseconds of each task in turn.
    tasks: fn(u64) -> u64,
    /// How many jobs are submitted at once, with the same name if they are repeated.
    together: u64,
    is_repeated: bool,
    submit: fn(&Scene<'_>, &str, &str) -> String,
}

const PLAIN: Kind = Kind {
    name: "records",
    scheduler: "fifo",
    tasks: alike,
    together: 1,
    is_repeated: false,
    submit: submit_records,
};

/// Eight kinds: tasks with and without progress, stragglers, reduces, repeated jobs, queues, and shares.
const KINDS: [Kind; 8] = [
    PLAIN,
    Kind {
        name: "commands",
        submit: submit_commands,
        ..PLAIN
    },
    Kind {
        name: "unlike commands",
        tasks: unlike,
        submit: submit_commands,
        ..PLAIN
    },
    Kind {
        name: "repeated commands",
        is_repeated: true,
        submit: submit_commands,
        ..PLAIN
    },
    Kind {
        name: "stragglers of commands",
        tasks: with_stragglers,
        submit: submit_commands,
        ..PLAIN
    },
    Kind {
        name: "groups",
        submit: submit_groups,
        ..PLAIN
    },
    Kind {
        name: "queues",
        together: 3,
        submit: submit_commands,
        ..PLAIN
    },
    Kind {
        name: "shares",
        scheduler: "fair",
        together: 3,
        submit: submit_commands,
        ..PLAIN
    },
];

fn alike(number: u64) -> u64 {
    1_500 + 100 * (number % 3)
}

fn unlike(number: u64) -> u64 {
    700 + 2_100 * (number * 7 % 5) / 4
}

fn with_stragglers(number: u64) -> u64 {
    if number % 11 == 10 { 7_000 } else { 1_000 }
}

/// A cluster for one kind of jobs.
struct Scene<'a> {
    folder: &'a Folder,
    cluster: &'a OwnCluster,
    tasks: fn(u64) -> u64,
}

const TASKS: u64 = 22;

impl Scene<'_> {
    /// Writes a file per task, with these contents.
    fn write_input(&self, input: &str, contents: impl Fn(u64) -> String) {
        for number in 0..TASKS {
            self.folder
                .write(&format!("{input}/{number:02}"), contents(number));
        }
    }
}

/// Each task is a command that reads its input at once and then sleeps.
fn submit_commands(scene: &Scene<'_>, input: &str, name: &str) -> String {
    scene.write_input(input, |number| {
        let millis = (scene.tasks)(number);
        format!("{}.{:03}\n", millis / 1_000, millis % 1_000)
    });
    let mut command = program("nap");
    command
        .env_remove("NAPREDUCE_DIR")
        .current_dir(scene.folder.root())
        .arg("streaming");
    command.args([
        "--input",
        input,
        "--output",
        &format!("out-{input}"),
        "--name",
        name,
    ]);
    command.args([
        "--mapper",
        "read seconds; sleep $seconds; echo $seconds",
        "--detach",
    ]);
    command
        .args(SPLIT)
        .arg("--cluster")
        .arg(scene.cluster.directory());
    run(&mut command).succeeded().stdout.trim().to_owned()
}

/// So small that each file is a task of its own.
const SPLIT: [&str; 2] = ["--split-size", "20000"];

/// Each task has records that take 20 ms.
fn submit_records(scene: &Scene<'_>, input: &str, name: &str) -> String {
    scene.write_input(input, |number| lines(number, (scene.tasks)(number) / 20));
    let output = format!("out-{input}");
    let arguments = [
        input,
        "--job",
        "slow-records",
        "--number",
        "20",
        "--output",
        &output,
        "--name",
        name,
    ];
    scene
        .cluster
        .submit(scene.folder, &[&arguments[..], &SPLIT].concat())
}

/// Fast maps, and reduces whose groups take 20 ms.
fn submit_groups(scene: &Scene<'_>, input: &str, name: &str) -> String {
    scene.write_input(input, |number| lines(number, (scene.tasks)(number) / 20));
    let output = format!("out-{input}");
    let arguments = [
        input,
        "--job",
        "slow-groups",
        "--number",
        "20",
        "--output",
        &output,
        "--name",
        name,
    ];
    scene.cluster.submit(
        scene.folder,
        &[&arguments[..], &SPLIT, &["--reduces", "6"]].concat(),
    )
}

/// Lines that no other file has, so that each is a group of its own.
fn lines(file: u64, count: u64) -> String {
    let mut text = String::new();
    for line in 0..count {
        let number = file * 1_000_000 + line;
        let _ = writeln!(text, "{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    text
}

/// One look at a running job.
struct Sample {
    job: String,
    at: Instant,
    /// The least, likely and greatest seconds left; `None` if unknown.
    left: Option<[f64; 3]>,
}

/// Looks at jobs until they have ended; returns each look with the seconds that were left.
fn watch(cluster: &OwnCluster, jobs: &[String], period: Duration) -> Vec<(f64, Option<[f64; 3]>)> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut ended: Vec<(String, Instant)> = Vec::new();
    while ended.len() < jobs.len() {
        let listed = cluster.json(&["job", "list", "--limit", "50"]);
        let at = Instant::now();
        for job in listed.as_array().expect("an array") {
            let id = job["job"].as_str().expect("an id").to_owned();
            let is_watched = jobs.contains(&id) && ended.iter().all(|(known, _)| *known != id);
            if !is_watched {
                continue;
            }
            if !job["ended_millis"].is_null() {
                assert_eq!(job["state"], "succeeded", "{job}");
                ended.push((id, at));
            } else if job["map"]["running"] != 0 || job["reduce"]["running"] != 0 {
                samples.push(Sample {
                    job: id,
                    at,
                    left: left_of(job),
                });
            }
        }
        thread::sleep(period);
    }
    let left = |sample: &Sample| {
        let end = ended
            .iter()
            .find(|(job, _)| *job == sample.job)
            .expect("it ended")
            .1;
        (end.duration_since(sample.at).as_secs_f64(), sample.left)
    };
    samples.iter().map(left).collect()
}

fn left_of(job: &Value) -> Option<[f64; 3]> {
    let seconds = |name: &str| Some(job["left"][name].as_f64()? / 1e3);
    Some([
        seconds("least_millis")?,
        seconds("likely_millis")?,
        seconds("most_millis")?,
    ])
}

/// How well the estimates hold: the number of samples, the share with an estimate and the share of those whose range
/// holds the truth, in percent, and the median of likely over true.
fn calibration(samples: &[(f64, Option<[f64; 3]>)]) -> (usize, usize, usize, f64) {
    let known: Vec<(f64, [f64; 3])> = samples
        .iter()
        .filter_map(|(left, shown)| Some((*left, (*shown)?)))
        .collect();
    let holds = known
        .iter()
        .filter(|(left, [least, _, most])| (*least..=*most).contains(left))
        .count();
    let mut ratios: Vec<f64> = known
        .iter()
        .map(|(left, [_, likely, _])| likely / left.max(0.05))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN);
    let percent = |part: usize, all: usize| part * 100 / all.max(1);
    (
        samples.len(),
        percent(known.len(), samples.len()),
        percent(holds, known.len()),
        median,
    )
}

/// Samples every kind of jobs on a cluster of its own, and prints and returns all samples.
fn sample_all(kinds: &[Kind], rounds: u64, period: Duration) -> Vec<(f64, Option<[f64; 3]>)> {
    let mut all = Vec::new();
    for kind in kinds {
        let folder = Folder::new();
        let cluster = OwnCluster::start(&folder, 4, kind.scheduler, "");
        let scene = Scene {
            folder: &folder,
            cluster: &cluster,
            tasks: kind.tasks,
        };
        let mut of_kind = Vec::new();
        for round in 0..rounds.div_ceil(kind.together) {
            let mut jobs = Vec::new();
            for number in 0..kind.together {
                let input = format!("in-{round}-{number}");
                let name = if kind.is_repeated {
                    "nightly".to_owned()
                } else {
                    input.clone()
                };
                jobs.push((kind.submit)(&scene, &input, &name));
            }
            of_kind.extend(watch(&cluster, &jobs, period));
        }
        let (samples, known, inside, median) = calibration(&of_kind);
        println!(
            "{:24} {samples:5} samples, {known} % known, {inside} % inside, median {median:.2}",
            kind.name
        );
        all.extend(of_kind);
    }
    all
}

/// Says nothing about the truth of the estimates, which depends on the other processes of the machine: see
/// [`range_holds_the_time_left_on_a_real_cluster`], and the simulated jobs of `napreduce-sim`.
#[test]
fn commands_without_progress_have_a_time_left() {
    let samples = sample_all(&KINDS[1..2], 1, Duration::from_millis(200));
    let (count, known, _, _) = calibration(&samples);
    assert!(
        count >= 20 && known >= 40,
        "{count} samples, {known} % known"
    );
    for [least, likely, most] in samples.iter().filter_map(|(_, left)| *left) {
        assert!(0.0 < least && least <= likely && likely <= most);
    }
}

#[test]
fn command_without_siblings_has_no_time_left() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    folder.write("in", "x\n");
    let read = folder.path("read");
    let gate = folder.path("gate");
    let mapper = format!(
        "cat; touch {}; while [ ! -e {} ]; do sleep 0.1; done",
        read.display(),
        gate.display()
    );
    let mut command = program("nap");
    command
        .env_remove("NAPREDUCE_DIR")
        .current_dir(folder.root());
    command.args([
        "streaming",
        "--input",
        "in",
        "--output",
        "out",
        "--mapper",
        &mapper,
    ]);
    command
        .arg("--detach")
        .arg("--cluster")
        .arg(cluster.directory());
    let job = run(&mut command).succeeded().stdout.trim().to_owned();
    wait_until("its input is read", || read.exists());
    let status = cluster.json(&["job", "status", &job]);
    assert_eq!(status[0]["left"], Value::Null, "{status}");
    let text = run(cluster.nap().args(["job", "status", &job]))
        .succeeded()
        .stdout;
    assert!(text.contains("left       unknown: "), "{text}");
    folder.write("gate", "");
    cluster.wait(&[&job]).succeeded();
}

/// Some 4,500 samples, in about twenty minutes on a quiet machine:
/// `cargo test -p napreduce-tests --test system -- --ignored --nocapture time_left`.
#[test]
#[ignore = "takes twenty minutes"]
fn range_holds_the_time_left_on_a_real_cluster() {
    let samples = sample_all(&KINDS, 9, Duration::from_millis(80));
    let (count, known, inside, median) = calibration(&samples);
    println!("{count} samples, {known} % known, {inside} % inside, median {median:.2}");
    assert!(count >= 4_500, "{count}");
    assert!(inside >= 75, "{inside} %");
    assert!((0.7..=1.4).contains(&median), "{median}");
}
