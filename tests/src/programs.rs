//! Runs the project's programs as a user does, and builds them first.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;

use crate::shared_cluster::shared_cluster;

/// Exit status and output of a program.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ended {
    /// Panics with standard error unless the program succeeded.
    pub fn succeeded(self) -> Ended {
        assert!(self.status.success(), "{}\n{}", self.status, self.stderr);
        self
    }

    /// Panics unless the program ended with this status and standard error contains each of these.
    pub fn failed(self, status: i32, says: &[&str]) -> Ended {
        assert_eq!(self.status.code(), Some(status), "{}\n{}", self.status, self.stderr);
        for words in says {
            assert!(self.stderr.contains(words), "{words:?} is not in:\n{}", self.stderr);
        }
        self
    }
}

/// The directory of the cluster that this process runs its jobs on, if it does.
pub fn cluster() -> Option<&'static Path> {
    shared_cluster(executables())
}

/// A command that runs one of the project's programs, by the name of its executable.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(executables().join(name));
    if let Some(directory) = cluster() {
        command.env("NAPREDUCE_CLUSTER", directory).env("NAPREDUCE_DIR", directory);
    }
    // Output must not depend on the environment of the tests.
    command.stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ended {
    let Output { status, stdout, stderr } =
        command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let mut texts = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if command.get_envs().any(|(name, value)| name == "NAPREDUCE_CLUSTER" && value.is_some()) {
        number_jobs_anew(&mut texts);
    }
    let [stdout, stderr] = texts;
    Ended { status, stdout, stderr }
}

/// A cluster that tests share has had other jobs before: the first one that these texts name becomes
/// `job_0001`, and so on, as they are called when a program runs its jobs by itself.
fn number_jobs_anew(texts: &mut [String]) {
    let mut jobs: Vec<String> = Vec::new();
    for text in texts.iter() {
        for (at, _) in text.match_indices("job_") {
            let digits = text[at + 4..].chars().take_while(char::is_ascii_digit).count();
            let job = text[at..at + 4 + digits].to_owned();
            if digits >= 4 && !jobs.contains(&job) {
                jobs.push(job);
            }
        }
    }
    for text in texts {
        // In two steps, since a new name may be another job's old one.
        for (number, job) in (1..).zip(&jobs) {
            *text = text.replace(job, &format!("job-{number:04}"));
        }
        *text = text.replace("job-", "job_");
    }
}

/// The folder of executables of this test run, all of them built.
///
/// Cargo builds the programs of a package beside its integration tests, so this costs nothing in a run of all
/// tests. In a run of one package's tests it builds the programs with the features of a run of all tests. If
/// `NAPREDUCE_TEST_PROGRAMS` is `built`, nothing is built.
fn executables() -> &'static PathBuf {
    static EXECUTABLES: OnceLock<PathBuf> = OnceLock::new();
    EXECUTABLES.get_or_init(|| {
        // A test runs as `target/debug/deps/name-hash`.
        let test = std::env::current_exe().expect("the path of this test");
        let deps = test.parent().expect("a test lies in a folder");
        let folder = deps.parent().expect("the folder of tests lies in a folder").to_owned();
        if std::env::var_os("NAPREDUCE_TEST_PROGRAMS").is_some_and(|value| value == "built") {
            return folder;
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["test", "--workspace", "--no-run", "--quiet"]);
        build.arg("--manifest-path").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"));
        build.arg("--target-dir").arg(folder.parent().expect("a profile lies in a target folder"));
        if folder.ends_with("release") {
            build.arg("--release");
        }
        let built = run(&mut build);
        assert!(built.status.success(), "the programs cannot be built:\n{}", built.stderr);
        folder
    })
}
