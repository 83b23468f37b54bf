//! `nap hadoop`: emulates the `hadoop` command for programs and scripts that run streaming jobs. A local directory
//! takes the place of `hdfs:///`; jobs run as `nap streaming`.

mod files;
mod jar;
mod properties;
mod root;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, ValueHint};
use napreduce_protocol::printing::{print, print_error};

use crate::streaming;
use root::HadoopRoot;

/// The version to report: commands and properties are those of Hadoop 3.
const VERSION: &str = "Hadoop 3.3.0";

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;

const HELP: &str = "\
Emulate the hadoop command for programs that run streaming jobs

Usage: nap hadoop [--hadoop-root DIR] COMMAND

Commands:
  jar ANY.jar OPTIONS  Run a streaming job: -files -D -cmdenv -input -output
                       -mapper -combiner -reducer -numReduceTasks
  fs OPTIONS           Work on files: -mkdir -put -copyFromLocal -ls -lsr -cat
                       -text -head -tail -getmerge -rm -rmr -rmdir -mv -cp -du
                       -count -test -touchz -get -copyToLocal -moveFromLocal
                       -appendToFile -chmod
  version              Print the version of Hadoop that is emulated

Options:
      --hadoop-root <DIR>  Directory for hdfs:/// [env: NAPREDUCE_HADOOP_ROOT]

hdfs:///a/b and /a/b are DIR/a/b, a/b is DIR/user/NAME/a/b, and file:///a/b is
/a/b. NAPREDUCE_CLUSTER names a cluster to run jobs on.

Examples:
  nap hadoop --hadoop-root store fs -put books /books
  nap hadoop --hadoop-root store jar any.jar -input /books -output /out \\
    -mapper 'cut -f 1' -reducer 'uniq -c'
  python job.py -r hadoop --hadoop-bin 'nap hadoop' \\
    --hadoop-streaming-jar any.jar books";

/// Emulate the hadoop command (jar, fs, version); see nap hadoop --help
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Options of hadoop
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::AnyPath)]
    _rest: Vec<OsString>,
}

/// Reports options before `hadoop`, where they would have no effect.
pub fn misplaced() -> ExitCode {
    refuse("options must follow `nap hadoop`; see: nap hadoop --help")
}

/// Runs the command in the arguments after `nap hadoop`.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut words = Vec::new();
    for argument in arguments {
        match argument.into_string() {
            Ok(word) => words.push(word),
            Err(other) => return refuse(&format!("{}: not UTF-8", other.display())),
        }
    }
    let mut rest = words.as_slice();
    let mut folder = None;
    if let [flag, named, behind @ ..] = rest
        && flag == "--hadoop-root"
    {
        (folder, rest) = (Some(named.as_str()), behind);
    }
    let Some((command, arguments)) = rest.split_first() else {
        return refuse(HELP);
    };
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
        "jar" => {
            match HadoopRoot::find(folder).and_then(|root| jar::as_streaming(&root, arguments)) {
                Ok(job) => {
                    for note in &job.notes {
                        print_error(format_args!("nap hadoop: {note}"));
                    }
                    streaming::run_as(
                        "nap hadoop jar",
                        job.options.into_iter().map(OsString::from),
                    )
                }
                Err(error) => refuse(&error),
            }
        }
        other => refuse(&format!(
            "unknown command {other:?}; expected jar, fs or version"
        )),
    }
}

fn refuse(why: &str) -> ExitCode {
    print_error(format_args!("nap hadoop: {why}"));
    ExitCode::from(WRONG_USAGE)
}
