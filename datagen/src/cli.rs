//! Commands of the `datagen` program: calls of the library, signals and exit statuses.

mod arguments;
mod progress;
mod suite;
mod summary;

use arguments::{Arguments, Command, Destination, TeraArguments, TextArguments, ValidateArguments};
use clap::Parser;
use datagen::Watch;
use datagen::centroids::CentroidsError;
use datagen::output::{FileNames, OutputError, OutputSettings, WrittenFiles};
use datagen::rows::RowsError;
use datagen::tera::{self, TeraError, TeraSettings};
use datagen::text::{self, TextError, TextSettings};
use datagen::validate::{self, ValidateError, ValidateSettings};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Instant;

/// Error that ends the program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Tera(#[from] TeraError),
    #[error(transparent)]
    Text(#[from] TextError),
    #[error(transparent)]
    Rows(#[from] RowsError),
    #[error(transparent)]
    Centroids(#[from] CentroidsError),
    #[error(transparent)]
    Validate(#[from] ValidateError),
    #[error("cannot catch signals: {0}")]
    Signals(io::Error),
    #[error("cannot print: {0}")]
    Print(io::Error),
}

/// The command failed after it started, or `validate` found records out of order.
const FAILED: u8 = 1;
/// The arguments or the input are invalid: the same command cannot succeed.
const INVALID: u8 = 2;
/// Exit status that shells report for a program ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        let code = match self {
            Failure::Tera(TeraError::TooManyRecords { .. })
            | Failure::Text(TextError::Vocabulary { .. } | TextError::Exponent { .. })
            | Failure::Rows(RowsError::Setting { .. }) => INVALID,
            Failure::Tera(TeraError::Output(error))
            | Failure::Text(TextError::Output(error))
            | Failure::Rows(RowsError::Output(error)) => match error {
                OutputError::Io { .. } => FAILED,
                OutputError::Interrupted { .. } => INTERRUPTED,
                OutputError::FileCount { .. }
                | OutputError::Exists { .. }
                | OutputError::Foreign { .. }
                | OutputError::NotDirectory { .. } => INVALID,
            },
            Failure::Centroids(CentroidsError::Io {
                action: "write", ..
            }) => FAILED,
            Failure::Centroids(CentroidsError::Interrupted)
            | Failure::Validate(ValidateError::Interrupted) => INTERRUPTED,
            Failure::Centroids(_) => INVALID,
            Failure::Validate(_) => INVALID,
            Failure::Signals(_) | Failure::Print(_) => FAILED,
        };
        ExitCode::from(code)
    }
}

/// Runs the command given on the command line.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let result = error.print();
            if !error.use_stderr() {
                ignore_broken_pipe(result).map_err(Failure::Print)?;
            }
            return Ok(ExitCode::from(
                u8::try_from(error.exit_code()).unwrap_or(FAILED),
            ));
        }
    };
    let watch = Watch::default();
    for signal in [SIGINT, SIGTERM] {
        // The first signal stops the run in order; a second one, in case that takes too long, ends the
        // program at once.
        flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), watch.stop_flag())
            .and_then(|_| flag::register(signal, watch.stop_flag()))
            .map_err(Failure::Signals)?;
    }
    match arguments.command {
        Command::Tera(arguments) => run_tera(&arguments, watch),
        Command::Text(arguments) => run_text(&arguments, watch),
        Command::Movies(arguments) => suite::run_movies(&arguments, watch),
        Command::Centroids(arguments) => suite::run_centroids(&arguments, watch),
        Command::Associations(arguments) => suite::run_associations(&arguments, watch),
        Command::Graph(arguments) => suite::run_graph(&arguments, watch),
        Command::Validate(arguments) => run_validate(arguments, watch),
    }
}

fn run_tera(arguments: &TeraArguments, watch: Watch) -> Result<ExitCode, Failure> {
    let settings = TeraSettings {
        records: arguments.records,
        start: arguments.start,
        format: arguments.format,
        output: output_settings(&arguments.destination, watch),
    };
    let data = format!(
        "{} {} records",
        summary::thousands(arguments.records),
        arguments.format
    );
    generate(&data, &settings.output, arguments.destination.quiet, || {
        tera::generate(&settings)
    })
}

fn run_text(arguments: &TextArguments, watch: Watch) -> Result<ExitCode, Failure> {
    let mut output = output_settings(&arguments.destination, watch);
    if let Some(documents) = arguments.documents {
        (output.files, output.names) = (documents, FileNames::Documents);
    }
    let settings = TextSettings {
        bytes: arguments.bytes,
        vocabulary: arguments.vocabulary,
        exponent: arguments.exponent,
        seed: arguments.seed,
        output,
    };
    let data = format!(
        "text of {} words",
        summary::thousands(u64::from(arguments.vocabulary))
    );
    generate(&data, &settings.output, arguments.destination.quiet, || {
        text::generate(&settings)
    })
}

fn output_settings(destination: &Destination, watch: Watch) -> OutputSettings {
    OutputSettings {
        directory: destination.output.clone(),
        files: destination.files,
        overwrite: destination.overwrite,
        threads: destination.threads,
        names: FileNames::Parts,
        watch,
    }
}

fn generate<E: Send>(
    data: &str,
    output: &OutputSettings,
    quiet: bool,
    work: impl FnOnce() -> Result<WrittenFiles, E>,
) -> Result<ExitCode, Failure>
where
    Failure: From<E>,
{
    let started = Instant::now();
    let written = progress::show_while("writing", &output.watch, quiet, work)?;
    if !quiet {
        print_error(summary::of_output(
            data,
            &output.directory,
            &written,
            started.elapsed(),
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn run_validate(arguments: ValidateArguments, watch: Watch) -> Result<ExitCode, Failure> {
    let settings = ValidateSettings {
        inputs: arguments.inputs,
        format: arguments.format,
        threads: arguments.threads,
        watch,
    };
    let work = || validate::validate_with(&settings);
    let report = progress::show_while("validating", &settings.watch, arguments.quiet, work)?;
    let result = if arguments.json {
        summary::print_json(&report, &mut io::stdout().lock())
    } else {
        summary::print_report(&report, &mut io::stdout().lock())
    };
    ignore_broken_pipe(result).map_err(Failure::Print)?;
    Ok(if report.unordered == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    })
}

/// Prints a line to standard error. Unlike `eprintln!`, it ignores write errors instead of panicking.
pub(crate) fn print_error(line: impl Display) {
    let line = format!("{line}\n");
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Flushes standard output after `result`. A closed pipe is not an error.
pub(crate) fn ignore_broken_pipe(result: io::Result<()>) -> io::Result<()> {
    match result.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
