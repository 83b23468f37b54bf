//! The programs that ours are compared with: which are installed, in which version, and the fastest formulation of
//! the same work that we found. Every peer gets as many threads as our job has slots. GNU sort gets the memory of all
//! slots together; the memory of DuckDB and Polars is not limited.

mod bare_sort;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
pub use bare_sort::{bare_sort_program, bare_sort_requested};
use clap::ValueEnum;
use napreduce_engine::listed;
use serde::Serialize;

use crate::error::{cannot, signal, usage};
use crate::jobs::own_binary;
use crate::process::{CommandLine, Interrupt, run_and_read};
use crate::program::{BenchmarkJob, Resources};

const WORDCOUNT_DUCKDB: &str = include_str!("peers/wordcount_duckdb.py");
const WORDCOUNT_POLARS: &str = include_str!("peers/wordcount_polars.py");
const TERASORT_DUCKDB: &str = include_str!("peers/terasort_duckdb.py");
const TERASORT_POLARS: &str = include_str!("peers/terasort_polars.py");
const WORDCOUNT_PYSPARK: &str = include_str!("peers/wordcount_pyspark.py");
const TERASORT_PYSPARK: &str = include_str!("peers/terasort_pyspark.py");

/// The words of a text, one per line, sorted, counted, and written as `word TAB count`.
const WORDCOUNT_COREUTILS: &str = r#"set -o pipefail; tr -s ' ' '\n' < "$1" | LC_ALL=C sort --parallel="$3" -S "$4" -T "$5" \
  | uniq -c | awk '$2 != "" { print $2 "\t" $1 }' > "$2""#;

listed! {
    /// Another program that does the same work.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
    #[serde(rename_all = "lowercase")]
    #[value(rename_all = "lower")]
    pub enum PeerTool {
        /// GNU sort; sorts rows
        Sort = "sort",
        /// `tr | sort | uniq -c`; counts words
        Coreutils = "coreutils",
        /// DuckDB from Python
        DuckDb = "duckdb",
        /// Polars from Python
        Polars = "polars",
        /// PySpark's RDDs, on this machine
        PySpark = "pyspark",
        /// Our sort in one process, without a framework; sorts rows
        Bare = "bare",
    }
}

#[derive(Clone, Debug)]
pub struct InstalledPeer {
    pub peer: PeerTool,
    /// Its version as it prints it.
    pub version: String,
    /// The program to start: a Python, or a tool of the system.
    program: PathBuf,
}

/// The installed peers, and a line about each of the others.
#[derive(Debug, Default)]
pub struct Found {
    pub installed: Vec<InstalledPeer>,
    /// Why other peers cannot run.
    pub remarks: Vec<String>,
    /// The Python, absolute, if one was named.
    pub python: Option<PathBuf>,
}

impl PeerTool {
    pub fn does(self, program: BenchmarkJob) -> bool {
        match self {
            PeerTool::Sort | PeerTool::Bare => program == BenchmarkJob::Terasort,
            PeerTool::Coreutils => program == BenchmarkJob::Wordcount,
            PeerTool::DuckDb | PeerTool::Polars | PeerTool::PySpark => true,
        }
    }

    fn module(self) -> Option<&'static str> {
        matches!(
            self,
            PeerTool::DuckDb | PeerTool::Polars | PeerTool::PySpark
        )
        .then_some(self.in_words())
    }

    /// The command whose first line of output is the version.
    fn version_command(self, program: &Path) -> CommandLine {
        match self.module() {
            None => CommandLine::new(program).arg("--version"),
            Some(module) => {
                let script = format!("import {module}; print('{module}', {module}.__version__)");
                CommandLine::new(program).flag("-c", script)
            }
        }
    }

    fn wanted(self, chosen: Option<&[PeerTool]>) -> bool {
        let is_slow = matches!(self, PeerTool::Coreutils | PeerTool::PySpark);
        chosen.map_or(!is_slow, |chosen| chosen.contains(&self))
    }
}

/// Which peers to look for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Without a choice all but the coreutils pipeline and PySpark, which take minutes.
    pub peers: Option<&'a [PeerTool]>,
    /// It may have DuckDB, Polars and PySpark.
    pub python: Option<&'a Path>,
}

/// Finds the wanted peers. Output of the programs is written to `folder`.
pub fn find(wanted: Wanted<'_>, folder: &Path, interrupt: &Interrupt) -> Result<Found> {
    let Wanted {
        peers: chosen,
        python,
    } = wanted;
    let mut found = Found::default();
    let python = python
        .map(|path| interpreter(path, folder, interrupt))
        .transpose()?;
    found.python.clone_from(&python);
    for peer in PeerTool::ALL.into_iter().filter(|peer| peer.wanted(chosen)) {
        if peer == PeerTool::Bare {
            let version = format!("bare sort {}", env!("CARGO_PKG_VERSION"));
            found.installed.push(InstalledPeer {
                peer,
                version,
                program: own_binary(),
            });
            continue;
        }
        let program = match (peer.module(), &python) {
            (None, _) => PathBuf::from("sort"),
            (Some(_), Some(python)) => python.clone(),
            (Some(_), None) if chosen.is_some() => {
                return Err(usage(format_args!(
                    "peer {peer} was asked for and needs a Python that has it; name one with --python"
                )));
            }
            (Some(module), None) => {
                found.remarks.push(format!(
                    "{peer}: left out; name a Python that has {module} with --python"
                ));
                continue;
            }
        };
        match run_and_read(&peer.version_command(&program), folder, interrupt) {
            Ok(text) => {
                let version = text.lines().next().unwrap_or_default().to_owned();
                found.installed.push(InstalledPeer {
                    peer,
                    version,
                    program,
                });
            }
            Err(error) if signal(&error).is_some() => return Err(error),
            Err(error) if chosen.is_some() => {
                return Err(usage(format_args!(
                    "peer {peer} was asked for and cannot run: {error}; install it or leave it out of --peers"
                )));
            }
            Err(_) => found.remarks.push(format!(
                "{peer}: left out; {} cannot run it",
                program.display()
            )),
        }
    }
    Ok(found)
}

/// The interpreter behind `path`, absolute, because programs run in another folder.
fn interpreter(path: &Path, folder: &Path, interrupt: &Interrupt) -> Result<PathBuf> {
    // The system looks up a bare name. A link is kept: it identifies a virtual environment.
    let program = match path.components().count() {
        0 | 1 => path.to_owned(),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    };
    match run_and_read(
        &CommandLine::new(&program).arg("--version"),
        folder,
        interrupt,
    ) {
        Ok(_) => Ok(program),
        Err(error) if signal(&error).is_some() => Err(error),
        Err(error) => Err(usage(format_args!("--python {}: {error}", path.display()))),
    }
}

/// Where one run of a peer reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    pub input: &'a Path,
    /// The file to write, in its own folder.
    pub output: &'a Path,
    /// A folder for temporary files and scripts.
    pub scratch: &'a Path,
}

/// A Python program of ours.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    pub name: &'a str,
    pub text: &'a str,
    /// Its first argument, before the places.
    pub first: Option<&'a str>,
}

impl InstalledPeer {
    /// The command that does the work of `program`. Scripts are written to the scratch folder.
    pub fn command(
        &self,
        program: BenchmarkJob,
        places: Places<'_>,
        resources: Resources,
    ) -> Result<CommandLine> {
        let threads = resources.slots.to_string();
        // GNU sort counts a bare number in kibibytes.
        let kibibytes = (resources.memory().bytes() / 1024).max(1).to_string();
        let script = match (self.peer, program) {
            (PeerTool::Sort, _) => return Ok(sort(&self.program, places, &threads, &kibibytes)),
            (PeerTool::Coreutils, _) => return Ok(coreutils(places, &threads, &kibibytes)),
            (PeerTool::Bare, _) => return Ok(bare_sort(&self.program, places, &threads)),
            (PeerTool::DuckDb, BenchmarkJob::Wordcount) => WORDCOUNT_DUCKDB,
            (PeerTool::DuckDb, BenchmarkJob::Terasort) => TERASORT_DUCKDB,
            (PeerTool::Polars, BenchmarkJob::Wordcount) => WORDCOUNT_POLARS,
            (PeerTool::Polars, BenchmarkJob::Terasort) => TERASORT_POLARS,
            (PeerTool::PySpark, BenchmarkJob::Wordcount) => WORDCOUNT_PYSPARK,
            (PeerTool::PySpark, BenchmarkJob::Terasort) => TERASORT_PYSPARK,
        };
        let script = Script {
            name: program.in_words(),
            text: script,
            first: None,
        };
        self.script(script, places, resources)
    }

    /// The command that runs a script, which is written to the scratch folder; `first` comes before the places.
    pub fn script(
        &self,
        script: Script<'_>,
        places: Places<'_>,
        resources: Resources,
    ) -> Result<CommandLine> {
        let Script { name, text, first } = script;
        let threads = resources.slots.to_string();
        let path = places.scratch.join(format!("{name}_{}.py", self.peer));
        fs::write(&path, text).map_err(cannot("write", &path))?;
        let command = CommandLine::new(&self.program).arg(path);
        let command = first
            .into_iter()
            .fold(command, CommandLine::arg)
            .arg(places.input)
            .arg(places.output);
        Ok(match self.peer {
            PeerTool::Polars => command.env("POLARS_MAX_THREADS", threads),
            PeerTool::PySpark => spark_of(&self.program, command.arg(threads).arg(places.scratch)),
            _ => command.arg(threads).arg(places.scratch),
        })
    }
}

/// The command with the Spark of this Python, which uses local addresses only.
pub fn spark_of(python: &Path, command: CommandLine) -> CommandLine {
    let python = python.to_string_lossy();
    command
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .env("PYSPARK_PYTHON", python)
}

fn sort(program: &Path, places: Places<'_>, threads: &str, kibibytes: &str) -> CommandLine {
    CommandLine::new(program)
        .env("LC_ALL", "C")
        .arg(format!("--parallel={threads}"))
        .flag("-S", kibibytes)
        .flag("-T", places.scratch)
        .flag("-o", places.output)
        .arg(places.input)
}

fn bare_sort(program: &Path, places: Places<'_>, threads: &str) -> CommandLine {
    CommandLine::new(program)
        .called(bare_sort::BARE_SORT_PROGRAM)
        .arg(places.input)
        .arg(places.output.parent().unwrap_or(places.output))
        .arg(threads)
}

fn coreutils(places: Places<'_>, threads: &str, kibibytes: &str) -> CommandLine {
    CommandLine::new("bash")
        .flag("-c", WORDCOUNT_COREUTILS)
        .arg("bash")
        .arg(places.input)
        .arg(places.output)
        .arg(threads)
        .arg(kibibytes)
        .arg(places.scratch)
}
