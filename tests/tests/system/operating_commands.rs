//! Operator commands on a real cluster with queues, also after a coordinator restart: list, logs, hold, set,
//! queues, drain, undrain, rerun, journal check.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use napreduce_tests::{
    Ended, Folder, GatedJob, NapUp, OwnCluster, joined, parts, program, run, wait_until,
};
use serde_json::Value;

const FAIR: &str = "[scheduler.fair.root.pools.production]\nweight = 3\nmin-maps = 1\n";

fn nap(cluster: &OwnCluster, arguments: &[&str]) -> Ended {
    run(cluster.nap().args(arguments))
}

/// Returns the IDs in a list of jobs.
fn ids(cluster: &OwnCluster, arguments: &[&str]) -> Vec<String> {
    let listed = cluster.json(&[&["job", "list"], arguments].concat());
    let jobs = listed.as_array().expect("an array");
    jobs.iter()
        .map(|job| job["job"].as_str().expect("an id").to_owned())
        .collect()
}

fn queue<'a>(queues: &'a Value, name: &str) -> &'a Value {
    let found = queues
        .as_array()
        .expect("an array")
        .iter()
        .find(|queue| queue["queue"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {queues}"))
}

#[test]
fn held_and_changed_job_equals_undisturbed_run() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fair", FAIR);
    let job = GatedJob::submit(&folder, &cluster, "gated", "first", 1, 2);
    job.until("m_0000.1", "running");
    nap(
        &cluster,
        &["job", "hold", job.id(), "--reason", "its input is late"],
    )
    .succeeded();
    nap(
        &cluster,
        &[
            "job",
            "set",
            job.id(),
            "--priority",
            "5",
            "--queue",
            "production",
        ],
    )
    .succeeded();
    let process = cluster.coordinator();
    assert!(process.signal(rustix::process::Signal::KILL));
    wait_until("the next coordinator", || {
        cluster.coordinator().number != process.number
    });
    let status = &cluster.json(&["job", "status", job.id()])[0];
    assert_eq!(
        (&status["priority"], &status["queue"]),
        (&5.into(), &"production".into()),
        "{status}"
    );
    let queues = cluster.json(&["queue", "list"]);
    let production = queue(&queues, "production");
    assert_eq!(
        (&production["weight"], &production["map"]["guaranteed"]),
        (&3.0.into(), &1.0.into()),
        "{production}"
    );
    assert_eq!(production["map"]["used"], 1, "{production}");
    // A held job finishes its running tasks and starts no more.
    job.open("m_0000");
    wait_until("the end of what ran", || job.live("m_0000").is_null());
    let why = nap(&cluster, &["job", "explain", job.id()])
        .succeeded()
        .stdout;
    assert!(why.contains("it is held: its input is late"), "{why}");
    assert!(
        why.contains("release it with: nap job release job_0001"),
        "{why}"
    );
    assert!(job.live("m_0001").is_null());
    assert_eq!(
        ids(&cluster, &["--queue", "production", "--state", "held"]),
        [job.id()]
    );
    assert_eq!(ids(&cluster, &["--user", "nobody-of-this-name"]), [""; 0]);
    nap(&cluster, &["job", "release", job.id()]).succeeded();
    nap(&cluster, &["job", "release", job.id()])
        .failed(2, &["cannot release job_0001: it is not held"]);
    job.ends_as_undisturbed();
    let events = job.history()["events"].to_string();
    for said in [
        "held: its input is late",
        "it has priority 5, queue production from now on",
        "resumed: ",
    ] {
        assert!(events.contains(said), "{said}: {events}");
    }
    nap(&cluster, &["job", "set", job.id(), "--priority", "1"]).failed(2, &["job_0001 has ended"]);
    assert_eq!(
        ids(
            &cluster,
            &["--since", "1h", "--sort", "-job", "--limit", "1"]
        ),
        [job.id()]
    );
    assert_eq!(ids(&cluster, &["--until", "2020-01-01"]), [""; 0]);
    let narrow = run(cluster.nap().env("COLUMNS", "80").args(["job", "list"]))
        .succeeded()
        .stdout;
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 80) && !narrow.contains('\u{1b}'),
        "{narrow}"
    );
}

#[test]
fn logs_follow_tail_and_failed_select_output() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    folder.write("in", "ada\nbob\neve\n");
    folder.write("names.txt", "bob\n");
    let arguments = [
        "in",
        "--job",
        "known-lines",
        "--output",
        "out",
        "--files",
        "names.txt#known",
    ];
    let good = cluster.submit(&folder, &arguments);
    let followed = cluster
        .nap()
        .args(["job", "logs", &good, "--follow"])
        .stdout(Stdio::piped())
        .spawn();
    let followed = followed
        .expect("it starts")
        .wait_with_output()
        .expect("it ends with the job");
    assert!(followed.status.success());
    let printed = String::from_utf8_lossy(&followed.stdout).into_owned();
    let attempt = format!("{good}_m_0000.1");
    assert_eq!(
        joined(&folder.path("out")),
        b"bob\n",
        "the side file is next to the attempt"
    );
    assert_eq!(
        printed,
        format!("==> {attempt} <==\nlooking for ada\nlooking for bob\nlooking for eve\n")
    );
    let one = nap(
        &cluster,
        &["job", "logs", &good, "m_0000", "--follow", "--tail", "1"],
    )
    .succeeded()
    .stdout;
    assert_eq!(one, "looking for eve\n", "one log is printed as it is");
    let tail = nap(&cluster, &["job", "logs", &good, "--tail", "2"])
        .succeeded()
        .stdout;
    assert_eq!(tail, "looking for bob\nlooking for eve\n");
    let errors = nap(&cluster, &["job", "logs", &good, &attempt, "--stderr"])
        .succeeded()
        .stdout;
    assert!(errors.contains("not an error: eve"), "{errors}");
    assert_eq!(
        nap(&cluster, &["job", "logs", &good, "--failed"])
            .succeeded()
            .stdout,
        ""
    );
    // Without its side file the job panics after the first line, which is fatal.
    let bad = cluster.submit(
        &folder,
        &["in", "--job", "known-lines", "--output", "out-bad"],
    );
    cluster.wait(&[&bad]).failed(1, &["is not retried"]);
    let failed = nap(&cluster, &["job", "logs", &bad, "--failed"])
        .succeeded()
        .stdout;
    let title = format!("==> {bad}_m_0000.1 stdout (failed on local-a: ");
    assert!(failed.contains(&title), "{title}: {failed}");
    assert_eq!(failed.matches("looking for ada\n").count(), 1, "{failed}");
    assert_eq!(failed.matches("not an error: ada\n").count(), 1, "{failed}");
    let listed = cluster.json(&["job", "logs", &bad, "--failed", "--stderr"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    assert_eq!(listed[0]["stream"], "stderr");
    let worker = &cluster.json(&["worker", "list"])[0];
    assert_eq!(
        (&worker["failures_per_hour"], &worker["speed"]),
        (&1.0.into(), &Value::Null),
        "{worker}"
    );
    // The coordinator keeps the stderr of failed attempts after their worker has left.
    let wrong = ["job", "logs", &bad, "m_0000.1"];
    let complained = nap(&cluster, &[&wrong[..], &["--stderr"]].concat())
        .succeeded()
        .stdout;
    nap(&cluster, &["worker", "drain", "local-a", "--wait"]).succeeded();
    assert_eq!(
        nap(&cluster, &[&wrong[..], &["--stderr"]].concat())
            .succeeded()
            .stdout,
        complained
    );
    nap(&cluster, &wrong).failed(1, &["are on local-a, which is not connected"]);
}

#[test]
fn worker_drains_with_reason_and_undrains_and_journal_checks() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let job = GatedJob::submit(&folder, &cluster, "gated", "only", 1, 1);
    job.until("m_0000.1", "running");
    nap(
        &cluster,
        &["worker", "drain", "local-a", "--reason", "a new disk"],
    )
    .succeeded();
    let worker = &cluster.json(&["worker", "list"])[0];
    assert_eq!(
        (&worker["state"], &worker["reason"]),
        (&"draining".into(), &"a new disk".into())
    );
    nap(&cluster, &["worker", "undrain", "local-a"]).succeeded();
    let worker = &cluster.json(&["worker", "list"])[0];
    assert_eq!(
        (&worker["state"], &worker["reason"]),
        (&"up".into(), &Value::Null)
    );
    nap(&cluster, &["worker", "undrain", "local-a"]).failed(2, &["it is not draining"]);
    let no_queues = nap(&cluster, &["queue", "list"]).succeeded();
    assert!(
        no_queues.stdout.is_empty()
            && no_queues
                .stderr
                .contains("the scheduler fifo has no queues")
    );
    assert_eq!(cluster.json(&["queue", "list"]), Value::Array(Vec::new()));
    nap(&cluster, &["job", "set", job.id(), "--queue", "nightly"])
        .failed(2, &["unknown queue nightly"]);
    let refused = nap(&cluster, &["job", "set", job.id(), "--queue", "production"]);
    refused.failed(
        2,
        &["job_0001 cannot have queue production under the scheduler fifo: fifo has no queues"],
    );
    let check = cluster.json(&["journal", "check"]);
    assert_eq!(
        (&check["workers"], &check["jobs"][0]["job"]),
        (&1.into(), &job.id().into()),
        "{check}"
    );
    assert_eq!(check["remarks"], Value::Array(Vec::new()));
    let none = nap(
        &cluster,
        &["journal", "check", folder.root().to_str().expect("text")],
    );
    none.failed(2, &["no coordinator journal in "]);
    job.ends_as_undisturbed();
}

#[test]
fn progress_of_job_wait_counts_from_submission() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let job = GatedJob::submit(&folder, &cluster, "gated", "only", 1, 1);
    let submitted = cluster.json(&["job", "status", job.id()])[0]["submitted_millis"]
        .as_u64()
        .expect("a time");
    wait_until("three seconds since the submission", || {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("a time after 1970");
        now.as_millis() >= u128::from(submitted) + 3_000
    });
    let mut command = cluster.nap();
    command
        .args(["job", "wait", job.id()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut waiting = command.spawn().expect("nap job wait");
    let mut progress = BufReader::new(waiting.stderr.take().expect("a pipe"));
    let mut line = String::new();
    progress.read_line(&mut line).expect("progress");
    let seconds = line
        .split_once(" s: maps ")
        .and_then(|(seconds, _)| seconds.parse::<u64>().ok());
    assert!(seconds >= Some(3), "{line}");
    job.ends_as_undisturbed();
    assert!(waiting.wait().expect("its end").success());
}

#[test]
fn ended_job_reruns_with_its_program_and_files() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    folder.write("in", "ada\nbob\neve\n");
    folder.write("names.txt", "bob\neve\n");
    let arguments = [
        "in",
        "--job",
        "known-lines",
        "--output",
        "out",
        "--files",
        "names.txt#known",
    ];
    let first = cluster.submit(&folder, &arguments);
    cluster.wait(&[&first]).succeeded();
    std::fs::remove_file(folder.path("names.txt")).expect("the coordinator has a copy");
    let process = cluster.coordinator();
    assert!(process.signal(rustix::process::Signal::KILL));
    wait_until("the next coordinator", || {
        cluster.coordinator().number != process.number
    });
    let output = folder.path("again");
    let output = output.to_str().expect("text");
    let again = nap(
        &cluster,
        &[
            "job",
            "rerun",
            &first,
            "--output",
            output,
            "--reason",
            "ada asked",
        ],
    )
    .succeeded();
    let again = again.stdout.trim().to_owned();
    cluster.wait(&[&again]).succeeded();
    assert_eq!(parts(&folder.path("again")), parts(&folder.path("out")));
    let events = cluster.json(&["job", "history", &again])[0]["events"].to_string();
    assert!(
        events.contains(&format!("submitted as a rerun of {first}: ada asked")),
        "{events}"
    );
    let submitted = cluster.json(&["job", "submitted", &again])[0].take();
    assert_eq!(submitted["rerun_of"], first, "{submitted}");
    assert!(
        submitted["command"]["arguments"]
            .to_string()
            .contains("known-lines"),
        "{submitted}"
    );
    let taken = nap(&cluster, &["job", "rerun", &first]);
    let remedy = format!("/out/ exists; choose another: nap job rerun {first} --output DIR");
    taken.failed(2, &[&remedy]);
    // A refused job takes no number.
    let output = folder.path("third");
    let third = nap(
        &cluster,
        &[
            "job",
            "rerun",
            &first,
            "--output",
            output.to_str().expect("text"),
        ],
    );
    assert_eq!((first.as_str(), again.as_str()), ("job_0001", "job_0002"));
    assert_eq!(third.succeeded().stdout.trim(), "job_0003");
    nap(&cluster, &["job", "rerun", "99"]).failed(2, &["there is no job_0099; see: nap job list"]);
}

#[test]
fn command_on_several_jobs_acts_on_each_possible() {
    let folder = Folder::new();
    folder.write("in", "one\n");
    let cluster = OwnCluster::start(&folder, 2, "fifo", "");
    let submit = |job: &str, output: &str| {
        cluster.submit(
            &folder,
            &["in", "--job", job, "--output", output, "--reduces", "1"],
        )
    };
    let ended = submit("slow", "ended");
    cluster.wait(&[&ended]).succeeded();
    for (number, ended_first) in [(1, true), (2, false)] {
        let endless = submit("endless", &format!("endless-{number}"));
        let both = if ended_first {
            [&ended, &endless]
        } else {
            [&endless, &ended]
        };
        let [one, other] = both.map(String::as_str);
        for command in ["suspend", "resume", "hold", "release", "kill"] {
            nap(&cluster, &["job", command, one, other])
                .failed(2, &[&ended, &format!("{endless} ")]);
        }
        wait_until("it is killed", || {
            cluster.json(&["job", "status", &endless])[0]["state"] == "killed"
        });
    }
    let shown = nap(&cluster, &["job", "status", "99", &ended, "50-60"]);
    assert!(
        shown.stdout.contains("state      succeeded"),
        "{}",
        shown.stdout
    );
    shown.failed(2, &["job_0099", "no job from job_0050 to job_0060"]);
    let endless = submit("endless", "endless-3");
    let map = format!("{endless}_m_0000");
    wait_until("it runs", || {
        cluster.json(&["task", "list", &endless])[0]["live"][0]["state"] == "running"
    });
    nap(
        &cluster,
        &["task", "kill", &format!("{ended}_m_0000"), &map],
    )
    .failed(2, &[&ended, &format!("{map}.1")]);
    nap(&cluster, &["worker", "drain", "nosuch", "local-a"]).failed(2, &["no worker nosuch"]);
    let workers = cluster.json(&["worker", "list"]);
    let drained = workers
        .as_array()
        .expect("an array")
        .iter()
        .find(|worker| worker["name"] == "local-a");
    assert!(
        drained.is_none_or(|drained| drained["state"] != "up"),
        "{workers}"
    );
    nap(&cluster, &["worker", "undrain", "nosuch", "local-b"])
        .failed(2, &["no worker nosuch", "cannot undrain"]);
}

#[test]
fn wrong_usage_exits_2_before_start() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let simulation = ["sim", "--workload", "fcs-map-heavy"];
    for wrong in [
        &[&simulation[..], &["--runs", "0"]].concat()[..],
        &[&simulation[..], &["--nodes", "0"]].concat(),
        &["sim", "--workload", "nosuch"],
        &["sim"],
        &["worker", "drain", "nosuch"],
        &["job", "logs", "1", "m_9999"],
        &["job", "logs", "last"],
        &["job", "status", "99"],
        &["job", "list", "--since", "1h", "--until", "2h"],
        &["job", "list", "--since", "99999999999h"],
        &["worker", "list", "--timeout", "99999999999h"],
        &["worker", "--memory-factor", "0"],
        &["worker", "--grace", "0s"],
        &["coordinator", "--liveness", "1ms"],
        &["up", "--coordinator", "127.0.0.1:1"],
    ] {
        nap(&cluster, wrong).failed(2, &[]);
    }
    let files = [
        "[worker]\nmap-slot = 1",
        "[worker]\nrack = \"\"",
        "[worker]\nmemory-factor = 0",
        "[worker]\nname = \"one\"",
        "[coordinator]\nliveness = \"1ms\"",
        "[coordinator]\nscheduler = \"fare\"",
        "[scheduler.capacity]\ndefault-queue = \"nosuch\"\n[coordinator]\nscheduler = \"capacity\"",
        "[up]\nworkers = 0",
        "workers = ",
    ];
    for (number, file) in files.into_iter().enumerate() {
        let directory = folder.path(&format!("wrong-{number}"));
        folder.write(&format!("wrong-{number}/napreduce.toml"), file);
        let mut up = program("nap");
        up.env_remove("NAPREDUCE_DIR")
            .arg("--dir")
            .arg(&directory)
            .args(["up", "--web", "off"]);
        run(&mut up).failed(2, &[]);
        let inside = std::fs::read_dir(&directory).expect("a directory").count();
        assert_eq!(inside, 1, "{file}: nothing has started");
    }
}

#[test]
fn nap_up_accepts_non_utf8_directory() {
    let folder = Folder::new();
    let directory = folder.root().join(OsStr::from_bytes(b"n\xff"));
    let nap = || {
        let mut command = program("nap");
        command
            .env_remove("NAPREDUCE_DIR")
            .arg("--dir")
            .arg(&directory);
        command
    };
    let mut command = nap();
    command
        .args(["up", "--workers", "1", "--web", "off"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut up = NapUp::of(command.spawn().expect("nap up"));
    wait_until("a worker", || {
        run(nap().args(["worker", "list", "--wait", "1"]))
            .status
            .success()
    });
    folder.write("in", "one\n");
    let mut wordcount = program("wordcount");
    wordcount
        .current_dir(folder.root())
        .args(["in", "--output", "out", "--detach", "--cluster"]);
    run(wordcount.arg(&directory)).succeeded();
    run(nap().args(["job", "wait", "1"])).succeeded();
    assert!(up.end().success());
    let names: BTreeSet<OsString> = std::fs::read_dir(folder.root())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(
        names,
        BTreeSet::from([
            "in".into(),
            "out".into(),
            OsString::from_vec(b"n\xff".to_vec())
        ])
    );
}

#[test]
fn commands_take_the_name_of_one_job() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let job = GatedJob::submit(&folder, &cluster, "gated", "first", 1, 1);
    job.until("m_0000.1", "running");
    // A task of the job of a name.
    nap(&cluster, &["task", "suspend", "first_m_0000"]).succeeded();
    assert_eq!(job.live("m_0000")["state"], "suspended");
    nap(&cluster, &["task", "resume", "first_m_0000", "--no-wait"]).succeeded();
    job.until("m_0000.1", "running");
    folder.write("in", "ada\nbob\n");
    folder.write("names.txt", "bob\n");
    let submit = |output: &str| {
        let arguments = [
            "in",
            "--job",
            "known-lines",
            "--files",
            "names.txt#known",
            "--name",
            "second words",
        ];
        cluster.submit(&folder, &[&arguments[..], &["--output", output]].concat())
    };
    submit("out-2");
    let status = |name: &str| cluster.json(&["job", "status", name])[0]["job"].clone();
    assert_eq!(
        (status("first"), status("second words")),
        ("job_0001".into(), "job_0002".into())
    );
    let tasks = cluster.json(&["task", "list", "first"]);
    assert!(
        tasks[0]["live"][0]["launched_millis"]
            .as_u64()
            .is_some_and(|millis| millis > 0),
        "{tasks}"
    );
    nap(&cluster, &["job", "kill", "second words"]).succeeded();
    nap(&cluster, &["job", "wait", "second words"]).failed(1, &["job_0002 was killed"]);
    // An unfinished job comes before an ended one of its name; two of them are an error.
    submit("out-3");
    assert_eq!(status("second words"), "job_0003");
    submit("out-4");
    nap(&cluster, &["job", "kill", "second words"]).failed(
        2,
        &["2 jobs have the name \"second words\": job_0004 (waiting), job_0003 (waiting)"],
    );
    nap(&cluster, &["job", "explain", "second"])
        .failed(2, &["no job has the ID or name \"second\""]);
    nap(&cluster, &["task", "kill", "second_m_0000"])
        .failed(2, &["no job has the ID or name \"second\""]);
    job.ends_as_undisturbed();
    cluster.wait(&["3-4"]).succeeded();
    nap(&cluster, &["job", "status", "second words"]).failed(2, &["3 jobs have the name"]);
    let history = cluster.directory().display().to_string();
    let report = folder.path("report.html").display().to_string();
    nap(
        &cluster,
        &["history", "report", &history, "first", "--output", &report],
    )
    .succeeded();
    nap(
        &cluster,
        &[
            "history",
            "report",
            &history,
            "second words",
            "--output",
            &report,
            "--overwrite",
        ],
    )
    .failed(
        2,
        &["job_0004 (succeeded), job_0003 (succeeded), job_0002 (killed); give the ID of one"],
    );
}

#[test]
fn jobs_are_compared_and_flows_are_summed() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let job = GatedJob::submit(&folder, &cluster, "gated", "first", 1, 1);
    job.until("m_0000.1", "running");
    nap(&cluster, &["task", "suspend", "first_m_0000"]).succeeded();
    nap(&cluster, &["task", "resume", "first_m_0000", "--no-wait"]).succeeded();
    job.ends_as_undisturbed();
    let output = folder.path("again").display().to_string();
    nap(&cluster, &["job", "rerun", "first", "--output", &output]).succeeded();
    cluster.wait(&["2"]).succeeded();
    let compared = cluster.json(&["job", "compare", "1", "2"]);
    assert_eq!(
        (&compared["left"]["taken"], &compared["right"]["taken"]),
        (&1.into(), &0.into()),
        "{compared}"
    );
    assert!(
        compared["left"]["napped_millis"].as_u64() > Some(0),
        "{compared}"
    );
    let labels: Vec<&str> = compared["submitted"]
        .as_array()
        .expect("rows")
        .iter()
        .map(label)
        .collect();
    assert_eq!(labels, ["Output"], "{compared}");
    // By default with the run before it; also without a cluster.
    assert_eq!(cluster.json(&["job", "compare", "last"]), compared);
    let history = cluster
        .directory()
        .join("coordinator")
        .display()
        .to_string();
    assert_eq!(
        cluster.json(&["job", "compare", "1", "2", "--history", &history]),
        compared
    );
    nap(&cluster, &["job", "compare", "1"])
        .failed(2, &["job_0001: no earlier job has its name; give two jobs"]);
    nap(&cluster, &["job", "compare", "all"]).failed(2, &["nap job compare takes one job, not 2"]);
    for columns in ["80", "200"] {
        let text = run(cluster
            .nap()
            .env("COLUMNS", columns)
            .args(["job", "compare", "1", "2"]))
        .succeeded();
        let figures: Vec<&str> = text
            .stdout
            .lines()
            .filter(|line| line.contains(" s "))
            .collect();
        assert!(
            figures.len() > 5 && figures.iter().all(|line| line.len() <= 80),
            "{}",
            text.stdout
        );
    }
    let flows = cluster.json(&["preemption", "flows"]);
    assert_eq!(flows.as_array().map(Vec::len), Some(1), "{flows}");
    assert_eq!(
        (&flows[0]["count"], &flows[0]["primitive"]),
        (&1.into(), &"suspend".into())
    );
    assert_eq!(
        (&flows[0]["to"], &flows[0]["from_name"]),
        (&Value::Null, &Value::Null)
    );
    let between = cluster.json(&[
        "preemption",
        "flows",
        "--between",
        "job",
        "--history",
        &history,
    ]);
    assert_eq!(
        (&between[0]["from"], &between[0]["from_name"]),
        (&"job_0001".into(), &"first".into())
    );
    assert_eq!(
        cluster.json(&["preemption", "flows", "--primitive", "kill"]),
        Value::Array(Vec::new())
    );
}

fn label(row: &Value) -> &str {
    row["label"].as_str().expect("a label")
}
