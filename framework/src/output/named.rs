//! Named outputs: side files that tasks write next to their part files.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use napreduce_protocol::{NamedPart, PartOutput, TaskError};
use napreduce_task::{CheckpointDirectory, OutputPiece, counter};

use super::error::{OutputError, PiecesError, ResumeError};
use super::part_writer::{PIECE, PartWriter};
use super::pieces::Pieces;
use super::{Output, OutputFormat};
use crate::input::InputPlace;
use crate::state::Save;

/// A named output: a job that declares `errors` writes `errors-r-00000` next to `part-r-00000`
/// (`errors-m-00000` without a reduce), one per task. Declare it with `named_output`, and write to it through
/// [`Output::to`](crate::Output::to).
///
/// The files are committed with the parts: all or none of a task, and none of a failed job. `_SUCCESS` lists
/// them, and the counter `OUTPUT_RECORDS errors` counts their records. A name consists of letters, digits,
/// `-` and `_`, begins with a letter, and is not `part`.
///
/// ```
/// use napreduce::output::{NamedOutput, Text};
/// use napreduce::testing::JobTest;
/// use napreduce::Job;
///
/// let halves = || {
///     let errors = NamedOutput::new("errors", Text);
///     Job::text().named_output(&errors).map_only(move |line: &str, out| match line.parse::<u64>() {
///         Ok(number) => out.emit(number / 2, ()),
///         Err(why) => out.to(&errors).emit(why.to_string(), line),
///     })
/// };
/// let test = JobTest::new(halves).input("4\nx\n10\n");
/// let output = test.run();
/// assert_eq!(output.text(), "2\n5\n");
/// assert_eq!(output.named_text("errors"), "invalid digit found in string\tx\n");
/// assert_eq!(output.counters.get("OUTPUT_RECORDS errors"), 1);
/// test.assert_preemption_safe();
/// ```
#[derive(Debug)]
#[must_use = "an output is written when the job declares it: call `named_output`"]
pub struct NamedOutput<F> {
    declared: Arc<Declared<F>>,
}

#[derive(Debug)]
struct Declared<F> {
    name: String,
    format: F,
}

impl<F> Clone for NamedOutput<F> {
    fn clone(&self) -> Self {
        NamedOutput {
            declared: Arc::clone(&self.declared),
        }
    }
}

impl<F: OutputFormat> NamedOutput<F> {
    /// Creates an output with this name and format.
    pub fn new(name: &str, format: F) -> NamedOutput<F> {
        NamedOutput {
            declared: Arc::new(Declared {
                name: name.to_owned(),
                format,
            }),
        }
    }

    pub(super) fn format(&self) -> F {
        self.declared.format.clone()
    }
}

/// A declared named output, with its format erased.
pub(crate) trait DeclaredOutput: Send + Sync {
    fn name(&self) -> &str;

    /// Returns whether its format can be checkpointed.
    fn saves(&self) -> bool;

    /// Creates a file next to a part; without one nothing is written.
    fn create(&self, part: Option<&Path>) -> Result<Box<dyn NamedWriter>, OutputError>;

    /// Continues after the pieces of earlier attempts.
    fn resume(
        &self,
        part: &Path,
        base: &Path,
        pieces: Vec<OutputPiece>,
        state: &[u8],
    ) -> Result<Box<dyn NamedWriter>, ResumeError>;
}

impl<F: OutputFormat> DeclaredOutput for NamedOutput<F> {
    fn name(&self) -> &str {
        &self.declared.name
    }

    fn saves(&self) -> bool {
        super::saves(&self.declared.format)
    }

    fn create(&self, part: Option<&Path>) -> Result<Box<dyn NamedWriter>, OutputError> {
        Ok(Box::new(match part {
            Some(part) => {
                Output::create(self.format(), &NamedPart::path_next_to(part, self.name()))?
            }
            None => Output::discarding(self.format()),
        }))
    }

    fn resume(
        &self,
        part: &Path,
        base: &Path,
        pieces: Vec<OutputPiece>,
        state: &[u8],
    ) -> Result<Box<dyn NamedWriter>, ResumeError> {
        let path = NamedPart::path_next_to(part, self.name());
        Ok(Box::new(resumed(
            self.format(),
            &path,
            base,
            pieces,
            state,
        )?))
    }
}

/// Continues one output after its pieces, with its format restored.
pub(super) fn resumed<F: OutputFormat>(
    mut format: F,
    path: &Path,
    base: &Path,
    pieces: Vec<OutputPiece>,
    state: &[u8],
) -> Result<Output<F>, ResumeError> {
    let pieces = Pieces::find(base, pieces)?;
    let stateless = matches!(format.save(&mut Vec::new()), Ok(Save::Stateless));
    if !stateless {
        format
            .restore(state)
            .map_err(|error| ResumeError::Checkpoint(error.message))?;
    }
    Ok(Output::over(PartWriter::after(pieces, path)?, format))
}

/// A writer of a named output, with its format erased.
pub(crate) trait NamedWriter: Any {
    fn enter(&mut self, place: InputPlace);
    fn check(&mut self) -> Result<(), OutputError>;
    fn save_format(&self, state: &mut Vec<u8>) -> Result<Save, TaskError>;
    fn cut(
        self: Box<Self>,
        directory: &mut CheckpointDirectory,
        piece: &str,
    ) -> Result<Vec<OutputPiece>, TaskError>;
    fn finish(self: Box<Self>) -> Result<PartOutput, PiecesError>;
}

impl<F: OutputFormat> NamedWriter for Output<F> {
    fn enter(&mut self, place: InputPlace) {
        Output::enter(self, place);
    }

    fn check(&mut self) -> Result<(), OutputError> {
        Output::check(self)
    }

    fn save_format(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        Output::save_format(self, state)
    }

    fn cut(
        self: Box<Self>,
        directory: &mut CheckpointDirectory,
        piece: &str,
    ) -> Result<Vec<OutputPiece>, TaskError> {
        self.part.cut(directory, piece)
    }

    fn finish(self: Box<Self>) -> Result<PartOutput, PiecesError> {
        Output::finish(*self)
    }
}

/// A named output of a task.
pub(super) struct OpenedOutput {
    pub(super) declared: Arc<dyn DeclaredOutput>,
    pub(super) writer: Box<dyn NamedWriter>,
}

impl OpenedOutput {
    /// Returns the name of its pieces in a checkpoint.
    pub(super) fn piece(&self) -> String {
        piece_of(self.declared.name())
    }

    pub(super) fn finish(self) -> Result<NamedPart, PiecesError> {
        let PartOutput {
            records,
            bytes,
            digest,
            ..
        } = self.writer.finish()?;
        let name = self.declared.name().to_owned();
        counter(&format!("OUTPUT_RECORDS {name}")).add(records);
        Ok(NamedPart {
            name,
            records,
            bytes,
            digest,
            upload: None,
        })
    }
}

pub(super) fn piece_of(name: &str) -> String {
    format!("{PIECE}.{name}")
}
