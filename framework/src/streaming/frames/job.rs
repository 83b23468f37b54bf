//! The job of `nap frames`, built from its parameters and the program's description.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Deserialize;

use super::super::place::make_place;
use super::hello::{Combine, Description, Input};
use super::mapper::{FramesMapper, FramesPart, Grouped, PairKey, PairValue};
use super::number::{Number, combine};
use super::program::{FramesProgram, Inquiry};
use super::reducer::FramesReducer;
use crate::builder::{Job, MapStage, Source};
use crate::codec::Value;
use crate::input::InputFormat;
use crate::program::{Driver, Error, Program};
use crate::user_code::CombineStage;

/// The name of the job in programs that have it.
const NAME: &str = "frames";

/// The Python module describes the process that has called `nap` in this variable. Tasks receive it as a
/// parameter: they have the arguments of that process, and errors name the program as its user does.
const DRIVER_VARIABLE: &str = "NAPREDUCE_PYTHON_DRIVER";
const DRIVER_PARAMETER: &str = "napreduce.driver";

/// Loads a program under another name than `__main__`, so that its main block runs in the driver only. A
/// program without the module speaks frames by itself and runs as always. Python searches next to a program
/// for modules.
const LOAD_PROGRAM: &str = r#"import os, runpy, sys
sys.argv = sys.argv[1:]
program = sys.argv[0]
sys.path[0] = os.path.dirname(os.path.realpath(program))
with open(program, "rb") as source:
    uses_module = b"napreduce" in source.read()
if not uses_module:
    runpy.run_path(program, run_name="__main__")
else:
    from napreduce.job import run_task
    run_task(program)"#;

/// Command-line arguments that name the program of a job.
///
/// ```
/// use clap::Parser;
/// use napreduce::streaming::frames::FramesArguments;
///
/// #[derive(Parser)]
/// struct Line {
///     #[command(flatten)]
///     program: FramesArguments,
/// }
///
/// let line = Line::parse_from(["nap", "--program", "wordcount.py", "--parameter", "least=2"]);
/// assert_eq!(line.program.python, "python3");
/// ```
#[derive(Debug, Clone, Args)]
pub struct FramesArguments {
    /// Program to run; shipped to the workers
    #[arg(long, value_name = "FILE")]
    pub program: PathBuf,

    /// Interpreter, by its name or path on every worker; "" for an executable program
    #[arg(long, value_name = "COMMAND", default_value = "python3")]
    pub python: String,

    /// Parameter of the program; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = NonEmptyStringValueParser::new())]
    pub parameter: Vec<String>,

    /// Zip file of Python modules to ship and import from; repeatable
    #[arg(long, value_name = "ZIP")]
    pub py_files: Vec<PathBuf>,
}

/// Creates the job that a program has described.
///
/// ```no_run
/// use napreduce::streaming::frames::{FramesProgram, job};
///
/// let program = FramesProgram::ask("./wordcount", "wordcount", [])?;
/// let words = job(&program);
/// # let _ = words;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn job(program: &FramesProgram) -> Job {
    let program = Arc::new(program.clone());
    match program.description.input {
        Input::Text => over(Job::text(), &program),
        Input::Bytes => over(Job::bytes(), &program),
    }
}

fn over<I>(source: Source<I>, program: &Arc<FramesProgram>) -> Job
where
    I: InputFormat + Clone,
    for<'r> I::Record<'r>: AsRef<[u8]>,
{
    let Description {
        reduce,
        combine: combined,
        grouped,
        ..
    } = program.description;
    match (combined, grouped) {
        _ if !reduce => source.part_map(FramesPart::new(program)),
        (None, false) => {
            let stage = source.mapper(FramesMapper::<I, Vec<u8>, Vec<u8>>::new(program, ()));
            reduced(stage, program)
        }
        (None, true) => {
            let stage = source.mapper(FramesMapper::<I, Grouped, Vec<u8>>::new(program, ()));
            reduced(stage.group_by(), program)
        }
        (Some(how), false) => {
            let stage = source.mapper(FramesMapper::<I, Vec<u8>, Number>::new(program, how));
            reduced(stage.combine(combine_by(how)), program)
        }
        (Some(how), true) => {
            let stage = source.mapper(FramesMapper::<I, Grouped, Number>::new(program, how));
            reduced(stage.combine(combine_by(how)).group_by(), program)
        }
    }
}

fn reduced<K: PairKey, V: PairValue, C: CombineStage<V>>(
    stage: MapStage<K, V, C, Vec<u8>>,
    program: &Arc<FramesProgram>,
) -> Job {
    let stage = match program.description.reduces {
        Some(reduces) => stage.reduces(reduces),
        None => stage,
    };
    stage.reducer(FramesReducer::<K, V>::new(program))
}

fn combine_by(
    how: Combine,
) -> impl Fn(&mut <Number as Value>::Owned, <Number as Value>::Owned) + Send + Sync + 'static {
    move |total, more| combine(how, total, more)
}

/// Adds the job to a program under the name `frames`, to be called with a [`FramesProgram`].
///
/// ```no_run
/// use napreduce::program::Error;
/// use napreduce::streaming::frames::{FramesProgram, add_to};
/// use napreduce::{Driver, Program};
///
/// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
///     let program = FramesProgram::ask("/srv/wordcount", "wordcount", []);
///     let program = program.map_err(|error| Error::Usage(error.to_string()))?;
///     driver.job("frames").parameters(&program).run().map(drop)
/// }
///
/// fn main() -> std::process::ExitCode {
///     add_to(Program::new()).drive(drive)
/// }
/// ```
pub fn add_to(program: Program) -> Program {
    program.job(NAME, job)
}

/// The `main` of a program, or of a subcommand, that runs the program named by its command line.
///
/// ```no_run
/// use napreduce::Program;
/// use napreduce::streaming::frames;
///
/// fn main() -> std::process::ExitCode {
///     frames::main(Program::new().about("Runs a program that speaks frames"))
/// }
/// ```
// Compiled in the programs that call it: `drive` adds the entry of the fork server to the code around it.
#[inline]
#[must_use = "the exit status shows whether the job succeeded; return it from `main`"]
pub fn main(program: Program) -> ExitCode {
    add_to(program).drive(|driver: &mut Driver<'_>, arguments: &FramesArguments| {
        let program = ship_program(driver, arguments).map_err(Error::Usage)?;
        driver.job(NAME).parameters(&program).run().map(drop)
    })
}

/// Ships the program and asks for its description. It runs as in its tasks: in a directory with all side
/// files.
fn ship_program(
    driver: &mut Driver<'_>,
    arguments: &FramesArguments,
) -> Result<FramesProgram, String> {
    let parameters = arguments.parameter.iter().map(|text| parameter(text));
    let mut parameters = parameters.collect::<Result<BTreeMap<_, _>, _>>()?;
    add_driver(&mut parameters, &arguments.program);
    let name = ship(driver, "--program", &arguments.program)?;
    let py_files = arguments
        .py_files
        .iter()
        .map(|path| ship(driver, "--py-files", path));
    let py_files = py_files.collect::<Result<Vec<_>, _>>()?;
    let command = command_line(&arguments.python, &name)?;
    let scratch = TemporaryDirectory::create()
        .map_err(|error| format!("create a directory to run {name} in: {error}"))?;
    let place = make_place(&scratch.path, None).map_err(|error| error.message)?;
    Inquiry {
        command,
        name,
        parameters,
        py_files,
    }
    .ask(&place)
}

/// Returns the command of a task.
fn command_line(python: &str, program: &str) -> Result<String, String> {
    let program = quoted(program);
    if python.is_empty() {
        return Ok(format!("exec ./{program}"));
    }
    let interpreter = if python.contains('/') {
        // Tasks start in another directory.
        let path = absolute(python).map_err(|error| format!("--python {python}: {error}"))?;
        quoted(&path.to_string_lossy())
    } else {
        quoted(python)
    };
    // Another extension may be of a script in another language.
    if program.ends_with(".py'") {
        return Ok(format!(
            "exec {interpreter} -c {} ./{program}",
            quoted(LOAD_PROGRAM)
        ));
    }
    Ok(format!("exec {interpreter} ./{program}"))
}

/// Adds what the Python module has said about the driver to the parameters, if the driver runs this program.
fn add_driver(parameters: &mut BTreeMap<String, String>, program: &Path) {
    #[derive(Deserialize)]
    struct Driver {
        program: PathBuf,
    }
    let Ok(text) = std::env::var(DRIVER_VARIABLE) else {
        return;
    };
    let Ok(driver) = serde_json::from_str::<Driver>(&text) else {
        return;
    };
    // A command that a program runs inherits its environment.
    if driver.program == program {
        parameters.insert(DRIVER_PARAMETER.to_owned(), text);
    }
}

/// Ships a file, unless it is already a side file; returns its name in tasks.
fn ship(driver: &mut Driver<'_>, flag: &str, path: &Path) -> Result<String, String> {
    let refuse = |why: &str| format!("{flag} {}: {why}", path.display());
    let name = path
        .file_name()
        .and_then(OsStr::to_str)
        .ok_or_else(|| refuse("not a file name"))?;
    if !path.is_file() {
        return Err(refuse("no such file"));
    }
    let is_same = |file: &Path| matches!((fs::canonicalize(file), fs::canonicalize(path)), (Ok(one), Ok(other)) if one == other);
    if !driver.side_file(name).is_some_and(is_same) {
        driver
            .ship_file(path, name)
            .map_err(|error| error.to_string())?;
    }
    Ok(name.to_owned())
}

fn parameter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("--parameter {text}: expected NAME=VALUE")),
    }
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A directory that is removed on drop.
struct TemporaryDirectory {
    path: PathBuf,
}

impl TemporaryDirectory {
    fn create() -> io::Result<TemporaryDirectory> {
        let parent = std::env::temp_dir();
        // A killed process with the same number may have left its directory.
        for number in 0..100 {
            let path = parent.join(format!("napreduce-frames-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created.map(|()| TemporaryDirectory { path }),
            }
        }
        let why = format!(
            "{}: 100 leftover directories; remove them",
            parent.display()
        );
        Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // A leftover directory does no harm.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_needs_a_name() {
        assert_eq!(parameter("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(parameter("a="), Ok(("a".to_owned(), String::new())));
        for wrong in ["a", "=b"] {
            assert_eq!(
                parameter(wrong),
                Err(format!("--parameter {wrong}: expected NAME=VALUE"))
            );
        }
    }

    #[test]
    fn quoted_word_is_one_shell_word() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
