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
use napreduce_task::CommandPlace;

use super::super::place::make_place;
use super::asking::ask;
use super::frames_program::FramesProgram;
use super::hello::{Combine, Description, Input};
use super::mapper::{FramesMapper, FramesPart, Grouped, PairKey, PairValue};
use super::number::{Number, combine};
use super::reducer::FramesReducer;
use crate::builder::{Job, MapStage, Source};
use crate::codec::Value;
use crate::input::InputFormat;
use crate::output::Text;
use crate::program::{Driver, Error, Program};
use crate::user_code::CombineStage;

/// The name of the job in programs that have it.
const NAME: &str = "frames";

/// The program of a job, as a command line names it.
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
    /// The program, which is taken along to where its tasks run
    #[arg(long, value_name = "FILE")]
    pub program: PathBuf,

    /// What runs the program, by its name or path on every worker; "" if that is the program itself
    #[arg(long, value_name = "COMMAND", default_value = "python3")]
    pub python: String,

    /// What the program finds among its parameters; may be said more than once
    #[arg(long, value_name = "NAME=VALUE", value_parser = NonEmptyStringValueParser::new())]
    pub parameter: Vec<String>,

    /// A zip of Python modules to take along, which tasks import from; may be said more than once
    #[arg(long, value_name = "ZIP")]
    pub py_files: Vec<PathBuf>,
}

impl FramesProgram {
    /// Asks the program of a command for `sh -c`, called `name` in messages, what its job is.
    ///
    /// # Errors
    ///
    /// When it cannot be run, or does not answer as [the protocol](super) says; the error names it.
    pub fn ask(
        command: &str,
        name: &str,
        parameters: impl IntoIterator<Item = (String, String)>,
    ) -> io::Result<FramesProgram> {
        let parameters = parameters.into_iter().collect();
        FramesProgram::ask_at(command, name, parameters, Vec::new(), &CommandPlace::default())
            .map_err(io::Error::other)
    }

    fn ask_at(
        command: &str,
        name: &str,
        parameters: BTreeMap<String, String>,
        py_files: Vec<String>,
        at: &CommandPlace,
    ) -> Result<FramesProgram, String> {
        let description = ask(command, &parameters, &py_files, at);
        let description = description.map_err(|what| format!("the program `{name}` {what}"))?;
        let (command, name) = (command.to_owned(), name.to_owned());
        Ok(FramesProgram { command, name, parameters, py_files, description })
    }
}

/// The job of a program.
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
    let Description { reduce, combine: combined, grouped, .. } = program.description;
    match (combined, grouped) {
        _ if !reduce => source.part_map(Text, FramesPart::new(program)),
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
    stage: MapStage<K, V, C, Vec<u8>, Text>,
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

/// The `main` of a program, or of a subcommand, whose own program comes from the command line.
///
/// ```no_run
/// use napreduce::Program;
/// use napreduce::streaming::frames;
///
/// fn main() -> std::process::ExitCode {
///     frames::main(Program::new().about("Runs a program that speaks frames"))
/// }
/// ```
#[must_use = "the exit status says whether the job succeeded; return it from `main`"]
pub fn main(program: Program) -> ExitCode {
    add_to(program).drive(|driver: &mut Driver<'_>, arguments: &FramesArguments| {
        let program = taken_along(driver, arguments).map_err(Error::Usage)?;
        driver.job(NAME).parameters(&program).run().map(drop)
    })
}

/// Takes the program along, and asks it as its tasks will run it: in a directory where it finds all files by
/// their names.
fn taken_along(driver: &mut Driver<'_>, arguments: &FramesArguments) -> Result<FramesProgram, String> {
    let parameters = arguments.parameter.iter().map(|said| parameter(said)).collect::<Result<_, _>>()?;
    let name = take_along(driver, "--program", &arguments.program)?;
    let py_files = arguments.py_files.iter().map(|path| take_along(driver, "--py-files", path));
    let py_files = py_files.collect::<Result<Vec<_>, _>>()?;
    let command = match arguments.python.as_str() {
        "" => format!("exec ./{}", quoted(&name)),
        // Tasks start elsewhere.
        path if path.contains('/') => {
            let path = absolute(path).map_err(|error| format!("--python {path}: {error}"))?;
            format!("exec {} ./{}", quoted(&path.to_string_lossy()), quoted(&name))
        }
        found => format!("exec {} ./{}", quoted(found), quoted(&name)),
    };
    let asked_at =
        AskingPlace::make().map_err(|error| format!("cannot make a directory to ask it in: {error}"))?;
    let place = make_place(&asked_at.path, None).map_err(|error| error.message)?;
    FramesProgram::ask_at(&command, &name, parameters, py_files, &place)
}

/// Takes a file along that a flag names, unless it is a side file already; what tasks call it.
fn take_along(driver: &mut Driver<'_>, flag: &str, path: &Path) -> Result<String, String> {
    let refuse = |why: &str| format!("{flag} {}: {why}", path.display());
    let name = path.file_name().and_then(OsStr::to_str).ok_or_else(|| refuse("it names no file"))?;
    if !path.is_file() {
        return Err(refuse("there is no such file"));
    }
    let is_it = |file: &Path| matches!((fs::canonicalize(file), fs::canonicalize(path)), (Ok(one), Ok(other)) if one == other);
    if !driver.side_file(name).is_some_and(is_it) {
        driver.take_along(path, name).map_err(|error| error.to_string())?;
    }
    Ok(name.to_owned())
}

fn parameter(said: &str) -> Result<(String, String), String> {
    let named = said.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = named.ok_or_else(|| format!("--parameter {said}: say NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A word that the shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A directory that is gone when this is.
struct AskingPlace {
    path: PathBuf,
}

impl AskingPlace {
    fn make() -> io::Result<AskingPlace> {
        let begin = std::env::temp_dir();
        // Another process of this number may have left one behind.
        for number in 0..100 {
            let path = begin.join(format!("napreduce-frames-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| AskingPlace { path }),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} is full of them", begin.display())))
    }
}

impl Drop for AskingPlace {
    fn drop(&mut self) {
        // What is left of it is in nobody's way.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_has_a_name_and_any_value() {
        assert_eq!(parameter("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(parameter("a="), Ok(("a".to_owned(), String::new())));
        for wrong in ["a", "=b"] {
            assert_eq!(parameter(wrong), Err(format!("--parameter {wrong}: say NAME=VALUE")));
        }
    }

    #[test]
    fn a_word_is_one_word_to_the_shell() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
