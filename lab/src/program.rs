//! The programs of `speed`, `memory` and `start`: their binaries and command lines.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use napreduce_engine::listed;
use napreduce_protocol::ByteSize;
use serde::Serialize;

use crate::error::usage;
use crate::machine::cpus;
use crate::process::CommandLine;

listed! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
    #[serde(rename_all = "lowercase")]
    pub enum BenchmarkJob {
        /// Count the words of text
        Wordcount = "wordcount",
        /// Sort rows of 100 bytes
        Terasort = "terasort",
    }
}

/// The binary of that name in `folder`.
pub fn find_binary(folder: &Path, program: &'static str, package: &'static str) -> Result<PathBuf> {
    let path = folder.join(program);
    if path.is_file() {
        return Ok(path);
    }
    Err(usage(format_args!(
        "no {program} binary at {}; build it with `cargo build --release -p {package}`, or name the folder that holds it with --bin-dir",
        path.display()
    )))
}

#[derive(Clone, Copy, Debug, Args, Serialize)]
pub struct Resources {
    /// Attempts that run at the same time; for other programs, threads [default: one per core]
    #[arg(long, value_name = "N", default_value_t = cpus().min(4096) as u32, hide_default_value = true,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub slots: u32,
    /// Memory budget of one task
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub task_memory: ByteSize,
}

impl Resources {
    /// The memory all slots may use together.
    pub fn memory(&self) -> ByteSize {
        ByteSize::new(self.task_memory.bytes().saturating_mul(self.slots.into()))
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Guest<'a> {
    pub master: &'a str,
    pub task_memory: ByteSize,
}

impl BenchmarkJob {
    pub fn binary(self, folder: &Path) -> Result<PathBuf> {
        find_binary(folder, self.in_words(), "napreduce-examples")
    }

    /// The command that runs the job on `input`, a file or a folder.
    pub fn command(
        self,
        binary: &Path,
        input: &Path,
        output: &Path,
        resources: Resources,
    ) -> CommandLine {
        let command = CommandLine::new(binary)
            .arg(input)
            .flag("--output", output)
            .flag("--slots", resources.slots.to_string())
            .flag("--task-memory", resources.task_memory.to_string())
            .arg("--overwrite")
            .flag("--progress", "never");
        self.of_text(command)
    }

    /// The command that runs the job on another engine, which has its own slots.
    pub fn guest_command(
        self,
        binary: &Path,
        input: &Path,
        output: &Path,
        guest: Guest<'_>,
    ) -> CommandLine {
        let command = CommandLine::new(binary)
            .arg(input)
            .flag("--output", output)
            .flag("--on", guest.master)
            .flag("--on-conf", "spark.ui.enabled=false")
            .flag("--task-memory", guest.task_memory.to_string())
            .flag("--progress", "never");
        self.of_text(command)
    }

    fn of_text(self, command: CommandLine) -> CommandLine {
        match self {
            BenchmarkJob::Wordcount => command,
            BenchmarkJob::Terasort => command.flag("--format", "ascii"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_binary_error_names_the_build_command() {
        let error = BenchmarkJob::Terasort
            .binary(Path::new("/nowhere"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("/nowhere/terasort") && error.contains("cargo build --release"),
            "{error}"
        );
    }

    #[test]
    fn commands_follow_the_contract_of_job_programs() {
        let resources = Resources {
            slots: 2,
            task_memory: ByteSize::new(256 << 20),
        };
        let command = BenchmarkJob::Terasort.command(
            "bin/terasort".as_ref(),
            "in".as_ref(),
            "out".as_ref(),
            resources,
        );
        let expected = "bin/terasort in --output out --slots 2 --task-memory 256MiB --overwrite \
                        --progress never --format ascii";
        assert_eq!(command.typed(), expected);
        let input = "in".as_ref();
        let output = "out".as_ref();
        let guest = Guest {
            master: "local[2]",
            task_memory: resources.task_memory,
        };
        let command =
            BenchmarkJob::Wordcount.guest_command("bin/wordcount".as_ref(), input, output, guest);
        let expected = "bin/wordcount in --output out --on 'local[2]' --on-conf spark.ui.enabled=false \
                        --task-memory 256MiB --progress never";
        assert_eq!(command.typed(), expected);
    }
}
