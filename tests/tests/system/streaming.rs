//! Commands as mappers and reducers, embedded and on clusters: outputs, and the processes of commands whose
//! tasks are suspended or killed or lose their worker.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use napreduce_tests::{Ended, Folder, OwnCluster, counter, parts, program, run, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SPLIT_WORDS: &str = "tr -s ' ' '\\n'";
const COUNT: &str = "awk -F '\\t' '
    NR > 1 && $1 \"\" != word { print word \"\\t\" count; count = 0 }
    { word = $1 \"\"; count++ }
    END { if (NR > 0) print word \"\\t\" count }'";

fn text() -> String {
    (0..3_000_u32)
        .map(|index| format!("w{} of{} the\n", index % 97, index * 7 % 331))
        .collect()
}

fn streaming(folder: &Folder, output: &str, rest: &[&str]) -> Command {
    let mut command = program("nap");
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR")
        .current_dir(folder.root());
    command
        .args(["streaming", "--input", "in", "--output", output, "--quiet"])
        .args(rest);
    command
}

fn wordcount(folder: &Folder, output: &str, rest: &[&str]) -> Ended {
    let commands = [
        "--mapper",
        SPLIT_WORDS,
        "--reducer",
        COUNT,
        "--reduces",
        "3",
        "--split-size",
        "9000",
    ];
    run(streaming(folder, output, &commands).args(rest))
}

/// Compares the output with that of the word count in Rust.
fn assert_as_wordcount(folder: &Folder, output: &str) {
    let mut rust = program("wordcount");
    rust.env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR")
        .current_dir(folder.root());
    run(rust.args([
        "in",
        "--output",
        "rust",
        "--overwrite",
        "--reduces",
        "3",
        "--quiet",
    ]))
    .succeeded();
    assert!(
        parts(&folder.path(output)) == parts(&folder.path("rust")),
        "{output} differs"
    );
}

#[test]
fn command_wordcount_equals_rust() {
    let folder = Folder::new();
    folder.write("in", text());
    wordcount(&folder, "out", &[]).succeeded();
    assert_as_wordcount(&folder, "out");
    assert_eq!(counter(&folder.path("out"), "MAP_INPUT_RECORDS"), 3_000);
    assert_eq!(counter(&folder.path("out"), "REDUCE_INPUT_RECORDS"), 9_000);
}

/// Writes a program to the folder `bin` and puts that first in the `PATH` of a command.
fn with_own_program(command: &mut Command, folder: &Folder, name: &str, script: &str) {
    let program = folder.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    command.env(
        "PATH",
        format!("bin:{}", std::env::var("PATH").expect("there is a PATH")),
    );
}

#[test]
fn relative_path_entry_finds_command() {
    let folder = Folder::new();
    folder.write("in", "one\n");
    let mut command = streaming(&folder, "out", &["--mapper", "shout"]);
    with_own_program(&mut command, &folder, "shout", "tr a-z A-Z");
    run(&mut command).succeeded();
    assert_eq!(parts(&folder.path("out"))[0].1, b"ONE\n");
}

#[test]
fn failing_sort_before_combiner_fails_job() {
    let folder = Folder::new();
    folder.write("in", "one\n");
    let commands = ["--mapper", "cat", "--combiner", "cat", "--reducer", "cat"];
    let mut command = streaming(&folder, "out", &commands);
    with_own_program(&mut command, &folder, "sort", "cat; exit 2");
    run(&mut command).failed(
        1,
        &["the sort in front of the combiner `sort` exited with status 2"],
    );
}

#[test]
fn streaming_without_reducer_writes_mapper_output() {
    let folder = Folder::new();
    folder.write("in", "a 1\nb 2\n");
    for (output, rest) in [("out", &[][..]), ("none", &["--reducer", "NONE"])] {
        let rest = [&["--mapper", "sed 's/$/!/'"], rest].concat();
        run(&mut streaming(&folder, output, &rest)).succeeded();
        assert_eq!(
            parts(&folder.path(output)),
            [("part-m-00000".to_owned(), b"a 1!\nb 2!\n".to_vec())]
        );
    }
}

#[test]
fn command_environment_names_job_task_and_input() {
    let folder = Folder::new();
    folder.write("in", "x\n");
    let mapper = "cat > /dev/null; echo $NAPREDUCE_JOB_ID $NAPREDUCE_TASK_ID $NAPREDUCE_ATTEMPT_ID $NAPREDUCE_INPUT_FILE";
    run(&mut streaming(&folder, "out", &["--mapper", mapper])).succeeded();
    let said = String::from_utf8(parts(&folder.path("out"))[0].1.clone()).expect("text");
    let input = fs::canonicalize(folder.path("in"))
        .expect("the input")
        .display()
        .to_string();
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(
        words[..3],
        ["job_0001", "job_0001_m_0000", "job_0001_m_0000.1"]
    );
    assert_eq!(
        fs::canonicalize(folder.path(words[3]))
            .expect("the input")
            .display()
            .to_string(),
        input
    );
}

#[test]
fn wrong_usage_and_failing_commands_are_reported() {
    let folder = Folder::new();
    folder.write("in", "x\n");
    run(&mut streaming(&folder, "out", &[])).failed(2, &["--mapper <CMD>", "nap streaming"]);
    run(&mut streaming(&folder, "out", &["--mapper", ""])).failed(2, &["--mapper"]);
    let once = ["--conf", "attempts-max=1", "--mapper"];
    run(streaming(&folder, "out", &once).arg("echo heard >&2; exit 3")).failed(
        1,
        &["the mapper `echo heard >&2; exit 3` exited with status 3"],
    );
    run(streaming(&folder, "out", &once).arg("no-such-program-here"))
        .failed(1, &["status 127 (command not found)"]);
    assert!(!folder.has("out"));
    run(&mut streaming(
        &folder,
        "out",
        &["--mapper", "cat", "--secret-file", "s"],
    ))
    .failed(2, &["--secret-file has no effect without --cluster"]);
    run(program("nap").args(["--dir", "d", "streaming", "--input", "in"]))
        .failed(2, &["options must follow `nap streaming`"]);
    let help = run(program("nap").args(["streaming", "--help"]))
        .succeeded()
        .stdout;
    assert!(
        help.contains("--reduces") && help.contains("Examples:"),
        "{help}"
    );
}

/// A job of one map and one reduce on a cluster, whose commands run until a file appears.
struct Held {
    /// Dropped before its folder.
    cluster: OwnCluster,
    folder: Folder,
    job: String,
}

/// A script that waits for a file with `read`, so that the shell can run its traps. It writes its process ID
/// to another file.
fn held(who: &str, trap: &str) -> String {
    format!(
        "trap {trap} TSTP; echo $$ > {who}.new; mv {who}.new {who}; exec 3<&0; cat <&3 & \
         while kill -0 $! 2> /dev/null; do wait $!; done; while ! test -e {who}.go; do sleep 0.01; done"
    )
}

impl Held {
    /// Starts the job; `trap` is the reaction of both shells to a stop request.
    fn start(trap: &str) -> Held {
        Held::start_under("fifo", "", trap)
    }

    fn start_under(scheduler: &str, configuration: &str, trap: &str) -> Held {
        let folder = Folder::new();
        folder.write("in", text());
        let cluster = OwnCluster::start(&folder, 1, scheduler, configuration);
        let inside = |who: &str| format!("cd '{}'; {}", folder.root().display(), held(who, trap));
        let mapper = inside("map");
        let reducer = inside("reduce");
        let arguments = [
            "--mapper",
            &mapper,
            "--reducer",
            &reducer,
            "--reduces",
            "1",
            "--conf",
            "slowstart=1",
        ];
        let mut command = streaming(&folder, "out", &arguments);
        command
            .arg("--detach")
            .arg("--cluster")
            .arg(cluster.directory());
        let job = run(&mut command).succeeded().stdout.trim().to_owned();
        Held {
            folder,
            cluster,
            job,
        }
    }

    fn task(&self, who: &str) -> String {
        format!("{}_{}_0000", self.job, if who == "map" { "m" } else { "r" })
    }

    /// Resumes a task that an operator suspended; it is held even after its attempt has ended.
    fn resume(&self, who: &str) {
        let task = self.task(who);
        self.nap(&["task", "resume", "--no-wait", &task])
            .succeeded();
    }

    /// Returns the process of the command, once it runs.
    fn process(&self, who: &str) -> i32 {
        let path = self.folder.path(who);
        wait_until(&format!("the {who} is at work"), || path.exists());
        fs::read_to_string(path)
            .expect("a file")
            .trim()
            .parse()
            .expect("a number")
    }

    fn nap(&self, arguments: &[&str]) -> Ended {
        run(self.cluster.nap().args(arguments))
    }

    fn until(&self, who: &str, state: &str) {
        let wanted = self.task(who);
        wait_until(&format!("the {who} is {state}"), || {
            let tasks = self.cluster.json(&["task", "list", &self.job]);
            let found = tasks
                .as_array()
                .expect("an array")
                .iter()
                .find(|task| task["task"] == wanted.as_str());
            found.is_some_and(|task| task["state"] == state)
        });
    }

    fn go(&self, who: &str) {
        self.folder.write(&format!("{who}.go"), "");
    }

    fn ends_as_undisturbed(&self) {
        self.cluster.wait(&[&self.job]).succeeded();
        run(&mut streaming(
            &self.folder,
            "plain",
            &["--mapper", "cat", "--reducer", "cat", "--reduces", "1"],
        ))
        .succeeded();
        assert!(
            parts(&self.folder.path("out")) == parts(&self.folder.path("plain")),
            "another output"
        );
    }

    fn history(&self) -> Value {
        self.cluster.json(&["job", "history", &self.job])[0].clone()
    }
}

/// The state letter of a process; `None` if it has ended.
fn state(process: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn is_gone(process: i32) -> bool {
    matches!(state(process), None | Some('Z' | 'X'))
}

/// Returns the process and all its descendants, as far as the kernel lists them.
fn family(process: i32) -> Vec<i32> {
    let listed =
        fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children = listed
        .split_whitespace()
        .filter_map(|number| number.parse().ok());
    std::iter::once(process)
        .chain(children.flat_map(family))
        .collect()
}

fn parent(process: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it is there");
    let (_, fields) = stat.rsplit_once(") ").expect("fields");
    fields
        .split_whitespace()
        .nth(1)
        .and_then(|number| number.parse().ok())
        .expect("a number")
}

fn kill(process: i32) {
    kill_process(Pid::from_raw(process).expect("a number"), Signal::KILL).expect("it is there");
}

fn suspend_and_resume(trap: &str) -> Held {
    let held = Held::start(trap);
    for who in ["map", "reduce"] {
        let process = held.process(who);
        held.nap(&["task", "suspend", &held.task(who)]).succeeded();
        held.until(who, "suspended");
        for member in family(process) {
            // A process that ended before the stop waits for its shell to reap it. A shell whose child was
            // stopped between vfork and exec waits for that child.
            let found = state(member);
            let in_vfork = || {
                family(member)
                    .into_iter()
                    .skip(1)
                    .any(|child| state(child) == Some('T'))
            };
            let still = matches!(found, Some('T' | 'Z')) || (found == Some('D') && in_vfork());
            assert!(still, "{who}: {member} of {process} is {found:?}");
        }
        held.go(who);
        held.nap(&["task", "resume", &held.task(who)]).succeeded();
    }
    held.ends_as_undisturbed();
    assert_eq!(counter(&held.folder.path("out"), "SUSPENDS"), 2);
    held
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

#[test]
fn suspended_task_stops_and_resumes_command() {
    suspend_and_resume("-");
}

#[test]
fn command_ignoring_sigtstp_is_stopped() {
    suspend_and_resume("''");
}

#[test]
fn command_handling_sigtstp_stops_itself() {
    let held = suspend_and_resume("'echo asked >> asked; kill -STOP $$'");
    assert_eq!(lines(&held.folder.path("asked")), 2);
}

#[test]
fn command_continuing_after_sigtstp_is_stopped_after_grace() {
    let held = suspend_and_resume("'echo asked >> asked'");
    assert_eq!(lines(&held.folder.path("asked")), 2);
}

#[test]
fn checkpoint_of_command_is_refused() {
    let held = Held::start("-");
    held.process("map");
    held.nap(&["task", "checkpoint", &held.task("map")]).failed(
        2,
        &["the maps of its job do not save their state; suspend or kill it"],
    );
    held.go("map");
    held.process("reduce");
    held.nap(&["task", "checkpoint", &held.task("reduce")])
        .failed(
            2,
            &["the reduces of its job do not save their state; suspend or kill it"],
        );
    held.go("reduce");
    held.ends_as_undisturbed();
}

/// A policy that checkpoints the first map for a job named `urgent`.
const CHECKPOINTS: &str = r#"
[scheduler.trigger]
rules = """
when submitted(urgent) do checkpoint(streaming/m0)
when finished(urgent) do launch(streaming/m0)
"""
"#;

#[test]
fn checkpoint_of_command_falls_back_as_configured() {
    let otherwise = ["map", "reduce"]
        .map(|kind| format!("[preemption.{kind}]\ncheckpoint = false\notherwise = \"kill\"\n"))
        .concat();
    let held = Held::start_under("trigger", &format!("{otherwise}{CHECKPOINTS}"), "-");
    held.process("map");
    fs::remove_file(held.folder.path("map")).expect("a file");
    let mut urgent = streaming(
        &held.folder,
        "urgent",
        &["--mapper", "cat", "--name", "urgent"],
    );
    run(urgent.arg("--cluster").arg(held.cluster.directory())).succeeded();
    held.process("map");
    held.go("map");
    held.go("reduce");
    held.ends_as_undisturbed();
    let history = held.history();
    let preemptions = history["preemptions"].as_array().expect("an array");
    let said = |name: &str| preemptions[0][name].as_str().expect("a text").to_owned();
    assert_eq!(
        ["asked", "primitive", "end"].map(said),
        ["checkpoint", "kill", "killed"],
        "{preemptions:?}"
    );
}

#[test]
fn checkpointing_cluster_refuses_streaming_job() {
    let folder = Folder::new();
    folder.write("in", "x\n");
    let cluster = OwnCluster::start(&folder, 1, "trigger", CHECKPOINTS);
    let mut command = streaming(&folder, "out", &["--mapper", "cat"]);
    let ended = run(command.arg("--cluster").arg(cluster.directory()));
    assert!(!ended.status.success());
    let says = "the mapper of streaming does not save its state";
    assert!(ended.stderr.contains(says), "{}", ended.stderr);
}

#[test]
fn killed_task_kills_command_and_retries() {
    let held = Held::start("-");
    for who in ["map", "reduce"] {
        let members = family(held.process(who));
        fs::remove_file(held.folder.path(who)).expect("a file");
        held.nap(&["task", "kill", &held.task(who)]).succeeded();
        for member in members {
            wait_until(&format!("{who}: {member} is gone"), || is_gone(member));
        }
        held.process(who);
        held.go(who);
    }
    held.ends_as_undisturbed();
    assert_eq!(
        held.history()["preemptions"]
            .as_array()
            .expect("an array")
            .len(),
        2
    );
}

#[test]
fn killed_task_process_kills_stopped_command() {
    let held = Held::start("''");
    for (who, is_stopped) in [("map", false), ("reduce", true)] {
        let process = held.process(who);
        fs::remove_file(held.folder.path(who)).expect("a file");
        let members = family(process);
        if is_stopped {
            held.nap(&["task", "suspend", &held.task(who)]).succeeded();
            held.until(who, "suspended");
        }
        kill(parent(process));
        for member in members {
            wait_until(&format!("{who}: {member} is gone"), || is_gone(member));
        }
        if is_stopped {
            held.resume(who);
        }
        held.process(who);
        held.go(who);
    }
    held.ends_as_undisturbed();
}

#[test]
fn killed_worker_kills_stopped_commands() {
    for is_stopped in [false, true] {
        let held = Held::start("-");
        let process = held.process("map");
        fs::remove_file(held.folder.path("map")).expect("a file");
        let members = family(process);
        if is_stopped {
            held.nap(&["task", "suspend", &held.task("map")])
                .succeeded();
            held.until("map", "suspended");
        }
        // The parent of the task is its worker; `nap up` starts another one.
        kill(parent(parent(process)));
        for member in members {
            wait_until(&format!("{member} is gone"), || is_gone(member));
        }
        if is_stopped {
            held.resume("map");
        }
        held.process("map");
        held.go("map");
        held.go("reduce");
        held.ends_as_undisturbed();
    }
}

#[test]
fn preempted_command_wordcount_equals_rust() {
    let folder = Folder::new();
    folder.write("in", text());
    let cluster = OwnCluster::start(&folder, 2, "fifo", "");
    let directory = cluster.directory().display().to_string();
    wordcount(&folder, "out", &["--cluster", &directory]).succeeded();
    assert_as_wordcount(&folder, "out");
}
