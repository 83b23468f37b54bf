//! Failures of user code, processes, disks and arguments: the error names the cause, and nothing is left
//! behind.

use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use napreduce_tests::{Ended, Folder, cluster, joined, program, run, sorted_lines};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// Deadline for every wait.
const DEADLINE: Duration = Duration::from_secs(180);

fn job(folder: &Folder, name: &str, more: &[&str]) -> Ended {
    let mut command = program("testjobs");
    command
        .current_dir(folder.root())
        .args(["in", "--job", name, "--output", "out", "--quiet"])
        .args(more);
    run(&mut command)
}

#[test]
fn panic_in_map_reports_message_location_and_input() {
    let folder = Folder::new();
    folder.write("in", "good\nbad\n");
    job(&folder, "panic-in-map", &[]).failed(
        1,
        &[
            "job_0001_m_0000 failed 4 times",
            "panicked at 'bad row', ",
            "misbehaving.rs:",
            "reading in line 2; the record begins with \"bad\"",
        ],
    );
    assert!(!folder.has("out"));
}

#[test]
fn attempts_max_limits_retries() {
    let folder = Folder::new();
    folder.write("in", "bad\n");
    job(&folder, "panic-in-map", &["--conf", "attempts-max=2"])
        .failed(1, &["job_0001_m_0000 failed 2 times"]);
}

#[test]
fn panic_in_combine_reports_message_location_and_input() {
    let folder = Folder::new();
    folder.write("in", "same\nsame\n");
    let says = [
        "job_0001_m_0000 failed 4 times",
        "cannot combine 1",
        "misbehaving.rs:",
        "reading in bytes 0..10",
    ];
    job(&folder, "panic-in-combine", &[]).failed(1, &says);
}

#[test]
fn panic_in_reduce_reports_message_location_and_group() {
    let folder = Folder::new();
    folder.write("in", "a\nb\nbad\nc\n");
    job(&folder, "panic-in-reduce", &["--reduces", "1"]).failed(
        1,
        &[
            "job_0001_r_0000 failed 4 times",
            "bad group",
            "misbehaving.rs:",
            "partition 0 group 2, key \"bad\"",
        ],
    );
}

#[test]
fn map_error_reports_message_and_input_position() {
    let folder = Folder::new();
    folder.write("in", "17\nx\n");
    let place = "reading in line 2; the record begins with \"x\"; fix the record, or return builder::BadRecord";
    job(&folder, "error-in-map", &[]).failed(1, &["invalid digit found in string", place]);
}

#[test]
fn existing_output_is_replaced_only_on_success() {
    let folder = Folder::new();
    folder.write("in", "bad\n");
    folder.write("out/part-r-00000", "old\n");
    folder.write("out/_SUCCESS", "{}");
    job(&folder, "panic-in-map", &[]).failed(
        2,
        &["output directory out/ exists; pass --overwrite or choose another"],
    );
    job(&folder, "panic-in-map", &["--overwrite"]).failed(1, &["failed 4 times"]);
    assert_eq!(
        joined(&folder.path("out")),
        b"old\n",
        "a failed job replaces nothing"
    );
    assert!(!folder.has("out/_temporary"));
    job(
        &folder,
        "words-of-bytes",
        &["--overwrite", "--reduces", "1"],
    )
    .succeeded();
    assert_eq!(joined(&folder.path("out")), b"bad\t1\n");
}

#[test]
fn unsafe_output_paths_are_refused_untouched() {
    let folder = Folder::new();
    folder.write("books/in", "x\n");
    let refused = |output: &str, says: &str| {
        let mut command = program("testjobs");
        command.current_dir(folder.root()).args([
            "books/in",
            "--job",
            "words-of-bytes",
            "--overwrite",
        ]);
        run(command.args(["--output", output, "--quiet"])).failed(2, &[says]);
    };
    for (output, says) in [
        ("/", "it is a system directory"),
        ("/etc", "it is a system directory"),
        ("ftp://host/x", "ftp:// is not supported"),
        ("books", "it is or contains the job's input books/in;"),
        (".", "it is or contains the job's input books/in;"),
    ] {
        refused(
            output,
            &format!("{output} cannot be an output directory: {says}"),
        );
    }
    refused(
        "hdfs://host/x",
        "hdfs://host/x is in HDFS, which this program was built without; build it with the",
    );
    assert!(
        !folder.has("ftp:")
            && !folder.has("hdfs:")
            && !folder.has("books/_temporary")
            && folder.has("books/in")
    );
}

/// Runs a job with its output on a file system of 4 MiB, and lists the remaining files.
fn on_a_small_disk(folder: &Folder, arguments: &str) -> Option<Ended> {
    std::fs::create_dir(folder.path("disk")).expect("a directory");
    let script = format!(
        "mount -t tmpfs -o size=4m tmpfs disk || exit 77; \"$0\" {arguments}; status=$?; \
         echo \"left: $(ls -A disk)\" >&2; exit $status"
    );
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .arg(program("testjobs").get_program());
    command.current_dir(folder.root());
    let ended = run(&mut command);
    if ended.status.code() == Some(77) || ended.stderr.contains("unshare failed") {
        println!(
            "skipped: this system does not let the test mount a file system: {}",
            ended.stderr.trim()
        );
        return None;
    }
    Some(ended)
}

#[test]
fn full_disk_during_spill_fails_job_and_leaves_nothing() {
    let folder = Folder::new();
    let text: String = (0..900_000)
        .map(|number| format!("word{number}\n"))
        .collect();
    folder.write("in", text);
    let arguments = "in --job words-without-combiner --output disk/out --quiet --task-memory 2MiB";
    if let Some(ended) = on_a_small_disk(&folder, arguments) {
        ended.failed(1, &["No space left on device", "disk/out", "left: \n"]);
    }
}

#[test]
fn full_disk_during_output_fails_job_and_leaves_nothing() {
    let folder = Folder::new();
    folder.write("in", "abc\n".repeat(5000));
    // Map output is small after compression; the parts are not.
    let arguments = "in --job big-values --number 2000 --output disk/out --quiet --reduces 1 --conf compression=lz4";
    if let Some(ended) = on_a_small_disk(&folder, arguments) {
        ended.failed(
            1,
            &[
                "No space left on device",
                "cannot write",
                "part-r-00000",
                "left: \n",
            ],
        );
    }
}

/// The process of a job program, which ends with the test.
struct JobProcess(Child);

impl Drop for JobProcess {
    fn drop(&mut self) {
        // Fails if it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A job that runs until it is ended, with the process of its only map.
struct Running {
    job: JobProcess,
    /// The process ID as text.
    id: String,
    task: Pid,
}

fn start_endless(folder: &Folder) -> Running {
    folder.write("in", "line\n");
    let mut command = program("testjobs");
    command.current_dir(folder.root()).args([
        "in",
        "--job",
        "endless",
        "--output",
        "out",
        "--progress",
        "never",
    ]);
    let mut job = JobProcess(
        command
            .stderr(Stdio::null())
            .spawn()
            .expect("the job starts"),
    );
    let said = folder.path("in.running");
    let began = Instant::now();
    while !said.exists() {
        assert!(
            began.elapsed() < DEADLINE,
            "the map does not say that it runs"
        );
        assert!(
            job.0.try_wait().expect("a process of this test").is_none(),
            "the job ended by itself"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    let line = std::fs::read_to_string(&said).expect("a readable file");
    let (attempt, task) = line.split_once(' ').expect("an attempt and its process");
    let id = attempt
        .strip_suffix("_m_0000.1")
        .expect("the first attempt")
        .to_owned();
    Running {
        job,
        id,
        task: task
            .parse()
            .ok()
            .and_then(Pid::from_raw)
            .expect("a process id"),
    }
}

impl Running {
    /// Ends the job with a signal; returns its exit status after its task process has ended.
    fn end(mut self, signal: Signal) -> std::process::ExitStatus {
        let task = pidfd_open(self.task, PidfdFlags::empty()).expect("the task runs");
        let job = Pid::from_child(&self.job.0);
        kill_process(job, signal).expect("the job runs");
        let status = self.job.0.wait().expect("the job can be waited for");
        wait_for_end(&task);
        status
    }
}

fn wait_for_end(task: &OwnedFd) {
    let mut waiting = [rustix::event::PollFd::new(
        task,
        rustix::event::PollFlags::IN,
    )];
    let deadline = rustix::event::Timespec {
        tv_sec: DEADLINE.as_secs() as i64,
        tv_nsec: 0,
    };
    let ended = rustix::event::poll(&mut waiting, Some(&deadline)).expect("a pidfd can be polled");
    assert_eq!(ended, 1, "the task outlived its job");
}

#[test]
fn interrupted_job_removes_output_and_sets_status() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let folder = Folder::new();
        let ended = start_endless(&folder).end(signal);
        assert_eq!(ended.code(), Some(status));
        assert!(!folder.has("out"), "nothing is left of the output");
    }
}

/// SIGKILL to a program ends its job, unless the job runs on a cluster.
#[test]
fn killed_program_ends_only_embedded_job() {
    let folder = Folder::new();
    let running = start_endless(&folder);
    if cluster().is_some() {
        let Running { mut job, id, task } = running;
        job.0
            .kill()
            .and_then(|()| job.0.wait())
            .expect("a process of this test");
        let task = pidfd_open(task, PidfdFlags::empty()).expect("the task goes on");
        run(program("nap").args(["job", "kill", &id])).succeeded();
        wait_for_end(&task);
        return;
    }
    running.end(Signal::KILL);
    assert!(folder.has("out/_temporary"), "the killed program left it");
    job(&folder, "words-of-bytes", &[]).succeeded();
    assert_eq!(sorted_lines(&joined(&folder.path("out"))), b"line\t1\n");
    assert!(!folder.has("out/_temporary"));
}

#[test]
fn wrong_usage_exits_2_and_lists_allowed_values() {
    let folder = Folder::new();
    folder.write("in", "x\n");
    job(&folder, "nothing", &[]).failed(2, &["job \"nothing\" is not defined", "words-of-bytes"]);
    job(&folder, "words-of-bytes", &["--conf", "speed=9"])
        .failed(2, &["\"speed\": unknown setting", "fan-in"]);
    for memory in ["lots", "0", "1", "1023k", "1025GiB", "16777215TiB"] {
        job(&folder, "words-of-bytes", &["--task-memory", memory]).failed(2, &["--task-memory"]);
    }
    let says = "expected 1MiB to 1TiB (default 256MiB)";
    job(&folder, "words-of-bytes", &["--task-memory", "0"]).failed(2, &[says]);
    job(&folder, "words-of-bytes", &["--split-size", "0"]).failed(2, &["--split-size 0"]);
    run(program("wordcount").current_dir(folder.root()).arg("in")).failed(2, &["--output"]);
}
