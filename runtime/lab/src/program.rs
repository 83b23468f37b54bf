//! Owns the programs that are measured: their names, where their binaries are and how they are called.
//! What a right output is belongs to the checks.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use napreduce_live::ByteSize;
use serde::Serialize;

use crate::process::CommandLine;

/// An example job that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BenchmarkJob {
    /// Counts the words of text.
    Wordcount,
    /// Sorts rows of 100 bytes.
    Terasort,
}

/// A program cannot be measured.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    #[error("no program {name:?}; choose from wordcount, terasort")]
    Unknown { name: String },
    /// Its binary is not where it should be.
    #[error(
        "no {program} binary at {path}; build it with `cargo build --release -p napreduce-examples`, \
         or name the folder that holds it with --bin-dir"
    )]
    Missing {
        program: BenchmarkJob,
        /// Where it was looked for.
        path: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Resources {
    /// Attempts that run at the same time; for peers, threads.
    pub slots: u32,
    /// Memory budget of one task.
    pub task_memory: ByteSize,
}

impl Resources {
    /// The memory all slots may use together.
    pub fn memory(&self) -> ByteSize {
        ByteSize::new(self.task_memory.bytes().saturating_mul(self.slots.into()))
    }
}

impl BenchmarkJob {
    pub const ALL: [BenchmarkJob; 2] = [BenchmarkJob::Wordcount, BenchmarkJob::Terasort];

    /// The name of the program and of its binary.
    pub fn name(self) -> &'static str {
        match self {
            BenchmarkJob::Wordcount => "wordcount",
            BenchmarkJob::Terasort => "terasort",
        }
    }

    /// The program's binary in `folder`.
    ///
    /// # Errors
    ///
    /// [`ProgramError::Missing`] says how to build it.
    pub fn binary(self, folder: &Path) -> Result<PathBuf, ProgramError> {
        let path = folder.join(self.name());
        if path.is_file() { Ok(path) } else { Err(ProgramError::Missing { program: self, path }) }
    }

    /// The command that runs the job on `input`, a file or a folder.
    pub fn command(self, binary: &Path, input: &Path, output: &Path, resources: Resources) -> CommandLine {
        let command = CommandLine::new(binary)
            .arg(input)
            .flag("--output", output)
            .flag("--slots", resources.slots.to_string())
            .flag("--task-memory", resources.task_memory.to_string())
            .arg("--overwrite")
            .flag("--progress", "never");
        match self {
            BenchmarkJob::Wordcount => command,
            BenchmarkJob::Terasort => command.flag("--format", "ascii"),
        }
    }
}

impl FromStr for BenchmarkJob {
    type Err = ProgramError;

    fn from_str(name: &str) -> Result<BenchmarkJob, ProgramError> {
        let found = BenchmarkJob::ALL.into_iter().find(|program| program.name() == name);
        found.ok_or_else(|| ProgramError::Unknown { name: name.to_owned() })
    }
}

impl fmt::Display for BenchmarkJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_others_are_refused() {
        for program in BenchmarkJob::ALL {
            assert_eq!(program.to_string().parse(), Ok(program));
        }
        let error = "sleep".parse::<BenchmarkJob>().unwrap_err().to_string();
        assert!(error.contains("\"sleep\"") && error.contains("wordcount, terasort"), "{error}");
    }

    #[test]
    fn a_missing_binary_says_how_to_build_it() {
        let error = BenchmarkJob::Terasort.binary(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/terasort") && error.contains("cargo build --release"), "{error}");
    }

    #[test]
    fn the_command_is_the_job_programs_contract() {
        let resources = Resources { slots: 2, task_memory: ByteSize::new(256 << 20) };
        let command =
            BenchmarkJob::Terasort.command("bin/terasort".as_ref(), "in".as_ref(), "out".as_ref(), resources);
        let expected = "bin/terasort in --output out --slots 2 --task-memory 256MiB --overwrite \
                        --progress never --format ascii";
        assert_eq!(command.typed(), expected);
    }
}
