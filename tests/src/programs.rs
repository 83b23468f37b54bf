//! Builds the project's programs and runs them as a user does.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;

use crate::shared_cluster::shared_cluster;

/// Exit status and output of a program.
#[derive(Debug)]
pub struct Ended {
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

    /// Panics unless the program ended with this status and standard error contains each of these texts.
    pub fn failed(self, status: i32, says: &[&str]) -> Ended {
        assert_eq!(
            self.status.code(),
            Some(status),
            "{}\n{}",
            self.status,
            self.stderr
        );
        for words in says {
            assert!(
                self.stderr.contains(words),
                "{words:?} is not in:\n{}",
                self.stderr
            );
        }
        self
    }
}

/// Returns the directory of the cluster on which this process runs its jobs, if any.
pub fn cluster() -> Option<&'static Path> {
    shared_cluster(executables())
}

/// A command that runs one of the project's programs, by the name of its executable.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(executables().join(name));
    if let Some(directory) = cluster() {
        command
            .env("NAPREDUCE_CLUSTER", directory)
            .env("NAPREDUCE_DIR", directory);
    }
    // The output must not depend on the environment of the tests.
    command.stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ended {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let mut texts = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if command
        .get_envs()
        .any(|(name, value)| name == "NAPREDUCE_CLUSTER" && value.is_some())
    {
        renumber_jobs(&mut texts);
    }
    let [stdout, stderr] = texts;
    Ended {
        status,
        stdout,
        stderr,
    }
}

/// Renumbers jobs, since earlier tests have run jobs on a shared cluster: the first job in these texts
/// becomes `job_0001` and so on, as in an embedded run.
fn renumber_jobs(texts: &mut [String]) {
    let mut jobs: Vec<String> = Vec::new();
    for text in texts.iter() {
        for (at, _) in text.match_indices("job_") {
            let digits = text[at + 4..]
                .chars()
                .take_while(char::is_ascii_digit)
                .count();
            let job = text[at..at + 4 + digits].to_owned();
            if digits >= 4 && !jobs.contains(&job) {
                jobs.push(job);
            }
        }
    }
    for text in texts {
        // In two steps, since the new name of one job may be the old name of another.
        for (number, job) in (1..).zip(&jobs) {
            *text = text.replace(job, &format!("job-{number:04}"));
        }
        *text = text.replace("job-", "job_");
    }
}

/// Returns the folder of the executables of this test run, after building them.
///
/// Cargo builds the programs of a package together with its integration tests, so this costs nothing in a run
/// of all tests. In a run of one package's tests, it builds the programs with the features of a run of all
/// tests. If `NAPREDUCE_TEST_PROGRAMS` is `built`, nothing is built.
fn executables() -> &'static PathBuf {
    static EXECUTABLES: OnceLock<PathBuf> = OnceLock::new();
    EXECUTABLES.get_or_init(|| {
        // The path of a test is `target/debug/deps/name-hash`.
        let test = std::env::current_exe().expect("the path of this test");
        let deps = test.parent().expect("a test is in a folder");
        let folder = deps
            .parent()
            .expect("the folder of tests is in a folder")
            .to_owned();
        if std::env::var_os("NAPREDUCE_TEST_PROGRAMS").is_some_and(|value| value == "built") {
            return folder;
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["test", "--workspace", "--no-run", "--quiet"]);
        build
            .arg("--manifest-path")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"));
        build
            .arg("--target-dir")
            .arg(folder.parent().expect("a profile is in a target folder"));
        if folder.ends_with("release") {
            build.arg("--release");
        }
        let built = run(&mut build);
        assert!(
            built.status.success(),
            "the programs cannot be built:\n{}",
            built.stderr
        );
        folder
    })
}
