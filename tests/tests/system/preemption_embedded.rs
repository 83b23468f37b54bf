//! SIGTSTP and SIGCONT to an embedded run or to one of its tasks: tasks are suspended and resume, and the
//! output stays the same.

use std::process::{Child, Stdio};

use napreduce_tests::{
    COUNTERS_OF_RECORDS, Folder, Process, counter, parts, program, run, wait_until,
};
use rustix::process::Signal;

/// A program with a job whose tasks take some seconds, with small records and groups.
struct Running<'test> {
    folder: &'test Folder,
    program: Child,
    process: Process,
}

fn arguments(output: &str, pause: &str) -> Vec<String> {
    let all = [
        "in",
        "--job",
        "slow",
        "--output",
        output,
        "--number",
        pause,
        "--reduces",
        "2",
    ];
    let more = ["--split-size", "10000", "--slots", "3", "--quiet"];
    all.into_iter().chain(more).map(str::to_owned).collect()
}

impl Running<'_> {
    fn start(folder: &Folder) -> Running<'_> {
        let line = |index: u32| format!("word{:03} other{:03}\n", index % 450, index * 7 % 150);
        folder.write("in", (0..1800).map(line).collect::<String>());
        let mut command = program("testjobs");
        command
            .current_dir(folder.root())
            .args(arguments("out", "5000"));
        let program = command.stderr(Stdio::piped()).spawn().expect("a program");
        let process = Process::of(program.id()).expect("it has just begun");
        Running {
            folder,
            program,
            process,
        }
    }

    fn tasks(&self) -> Vec<Process> {
        Process::tasks_of(self.program.id())
    }

    /// Waits until this many of its tasks are running user code.
    fn until_at_work(&self, count: usize) -> Vec<Process> {
        let mut tasks = Vec::new();
        wait_until(&format!("{count} tasks at work"), || {
            tasks = self.tasks();
            tasks.len() == count
                && tasks
                    .iter()
                    .all(|task| !task.is_stopped() && task.catches(Signal::TSTP))
        });
        tasks
    }

    /// Sends SIGTSTP and waits until the program has stopped; its tasks stop before it.
    fn stop(&self) -> Vec<Process> {
        assert!(self.process.signal(Signal::TSTP), "it runs");
        wait_until("the program stands still", || self.process.is_stopped());
        let tasks = self.tasks();
        assert!(
            tasks.iter().all(Process::is_stopped),
            "a task runs while its program stands still"
        );
        tasks
    }

    fn go_on(&self) {
        assert!(self.process.signal(Signal::CONT), "it is there");
    }

    /// Waits for the program. Checks that its output equals that of an undisturbed run.
    fn ends_as_undisturbed(mut self) {
        let status = self.program.wait().expect("a process of this test");
        assert!(status.success(), "{status}");
        let mut command = program("testjobs");
        run(command
            .current_dir(self.folder.root())
            .args(arguments("undisturbed", "0")))
        .succeeded();
        let out = self.folder.path("out");
        let undisturbed = self.folder.path("undisturbed");
        assert!(parts(&out) == parts(&undisturbed), "its output differs");
        for name in COUNTERS_OF_RECORDS {
            assert_eq!(counter(&out, name), counter(&undisturbed, name), "{name}");
        }
        for name in ["NUM_FAILED_MAPS", "NUM_FAILED_REDUCES", "WORK_LOST_MILLIS"] {
            assert_eq!(counter(&out, name), 0, "{name}");
        }
        assert!(
            !out.join("_temporary").exists(),
            "nothing is left next to the output"
        );
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Fails if it has already ended and was reaped.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn stopped_program_suspends_and_resumes_all_tasks() {
    let folder = Folder::new();
    let running = Running::start(&folder);
    let first = running.until_at_work(3);
    let stopped = running.stop();
    assert_eq!(stopped, first, "the same processes");
    running.go_on();
    wait_until("they go on", || first.iter().all(|task| !task.is_stopped()));
    // The next tasks as well, including reduces.
    wait_until("those are done", || first.iter().all(Process::is_gone));
    running.until_at_work(2);
    let again = running.stop().len();
    assert!((1..=3).contains(&again), "{again}");
    running.go_on();
    let out = folder.path("out");
    running.ends_as_undisturbed();
    assert_eq!(counter(&out, "SUSPENDS"), 3 + again as u64);
    assert_eq!(counter(&out, "RESUMES"), 3 + again as u64);
}

#[test]
fn stop_and_continue_in_quick_succession_continues() {
    let folder = Folder::new();
    let running = Running::start(&folder);
    running.until_at_work(3);
    for _ in 0..10 {
        assert!(running.process.signal(Signal::TSTP));
        assert!(running.process.signal(Signal::CONT));
    }
    wait_until("it came to rest or went on", || {
        // A SIGCONT just before the stop is lost, as with any program.
        running.process.is_stopped() || running.tasks().iter().any(|task| !task.is_stopped())
    });
    running.go_on();
    running.ends_as_undisturbed();
}

#[test]
fn stopped_task_gives_up_slot_and_takes_next() {
    let folder = Folder::new();
    let running = Running::start(&folder);
    let tasks = running.until_at_work(3);
    assert!(tasks[0].signal(Signal::TSTP));
    let out = folder.path("out");
    running.ends_as_undisturbed();
    assert_eq!(
        (counter(&out, "SUSPENDS"), counter(&out, "RESUMES")),
        (1, 1)
    );
}

#[test]
fn killed_stopped_program_leaves_no_task() {
    let folder = Folder::new();
    let mut running = Running::start(&folder);
    running.until_at_work(3);
    let stopped = running.stop();
    assert_eq!(stopped.len(), 3);
    running.program.kill().expect("a process of this test");
    wait_until("its tasks are gone", || {
        stopped.iter().all(Process::is_gone)
    });
}

#[test]
fn stopped_program_with_sigterm_ends_on_continue() {
    let folder = Folder::new();
    let mut running = Running::start(&folder);
    running.until_at_work(3);
    let stopped = running.stop();
    assert!(running.process.signal(Signal::TERM));
    assert!(running.process.is_stopped(), "it waits for that");
    running.go_on();
    let status = running.program.wait().expect("a process of this test");
    assert_eq!(status.code(), Some(143), "{status}");
    assert!(stopped.iter().all(Process::is_gone));
    assert!(!folder.has("out"), "nothing of the job is left");
}
