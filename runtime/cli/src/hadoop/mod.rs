//! `nap hadoop`: answers as the `hadoop` command does, for programs and scripts that run streaming
//! jobs with it.
//!
//! Owns which of its commands there are, and the folder that stands for `hdfs:///`. Does not own running the
//! job, which is `nap streaming`.

mod files;
mod jar;
mod properties;
mod root;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use napreduce_protocol::printing::{print, print_error};

use crate::streaming;
use root::HadoopRoot;

/// What programs take for a version whose commands and properties are those of Hadoop 3.
const VERSION: &str = "Hadoop 3.3.0";

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;

const HELP: &str = "\
Answers as the hadoop command, for programs and scripts that run streaming jobs with it

Usage: nap hadoop [--hadoop-root DIR] COMMAND

Commands:
  jar ANY.jar OPTIONS   run a streaming job: -files -D -cmdenv -input -output -mapper -combiner -reducer -numReduceTasks
  fs OPTIONS            -mkdir -put -copyFromLocal -ls -lsr -cat -text -head -tail -getmerge -rm -rmr -rmdir -mv -cp -du -count
                        -test -touchz -get -copyToLocal -moveFromLocal -appendToFile -chmod
  version               the version whose options these are

Paths are those of a folder: hdfs:///a/b is DIR/a/b, and so are /a/b, and a/b below /user/NAME; file:///a/b is /a/b.
DIR is also said by NAPREDUCE_HADOOP_ROOT. A cluster is named by NAPREDUCE_CLUSTER. What is not known is refused by name.

Examples:
  nap hadoop --hadoop-root store fs -put books /books
  nap hadoop --hadoop-root store jar any.jar -input /books -output /out -mapper 'cut -f 1' -reducer 'uniq -c'
  python job.py -r hadoop --hadoop-bin 'nap hadoop' --hadoop-streaming-jar any.jar books      # a job of mrjob";

/// Answer as the hadoop command: jar, fs, version; nap hadoop --help has more
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Those of hadoop
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<OsString>,
}

/// Something stands before `hadoop`, which would be without effect.
pub fn misplaced() -> ExitCode {
    refuse("options stand after `nap hadoop`; see: nap hadoop --help")
}

/// Does what these arguments, which follow `nap hadoop`, say.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut words = Vec::new();
    for argument in arguments {
        match argument.into_string() {
            Ok(word) => words.push(word),
            Err(other) => return refuse(&format!("{} is no UTF-8", other.display())),
        }
    }
    let mut rest = words.as_slice();
    let mut folder = None;
    if let [flag, named, behind @ ..] = rest
        && flag == "--hadoop-root"
    {
        (folder, rest) = (Some(named.as_str()), behind);
    }
    let Some((command, arguments)) = rest.split_first() else { return refuse(HELP) };
    match command.as_str() {
        "version" => {
            print(format_args!("{VERSION}\n"));
            ExitCode::SUCCESS
        }
        "--help" | "-h" | "help" => {
            print(format_args!("{HELP}\n"));
            ExitCode::SUCCESS
        }
        "fs" | "dfs" => match HadoopRoot::find(folder) {
            Ok(root) => files::run(&root, arguments),
            Err(error) => refuse(&error),
        },
        "jar" => match HadoopRoot::find(folder).and_then(|root| jar::as_streaming(&root, arguments)) {
            Ok(job) => {
                for note in &job.notes {
                    print_error(format_args!("nap hadoop: {note}"));
                }
                streaming::run_as("nap hadoop jar", job.options.into_iter().map(OsString::from))
            }
            Err(error) => refuse(&error),
        },
        other => refuse(&format!("no command {other:?}; there are jar, fs and version")),
    }
}

fn refuse(why: &str) -> ExitCode {
    print_error(format_args!("nap hadoop: {why}"));
    ExitCode::from(WRONG_USAGE)
}
