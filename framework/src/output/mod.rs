//! Output formats: conversion of emitted records to the bytes of a part file.
//!
//! ```
//! use napreduce::output::FixedBytes;
//! use napreduce::{Emit, Job};
//!
//! let job = Job::fixed_records(16)
//!     .map(|row: &[u8], out: &mut Emit<Vec<u8>, ()>| out.emit(row, ()))
//!     .output(FixedBytes { length: 16 })
//!     .reduce(|row, _, out| out.write(row));
//! # let _ = job;
//! ```

mod error;
mod formats;
mod named;
mod part_writer;
mod pieces;
mod resume;
mod text_field;

use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;

use napreduce_protocol::{PartOutput, TaskError};
use napreduce_task::{CheckpointDirectory, OutputPiece};

pub(crate) use error::{OutputError, OutputNameError, PiecesError, ResumeError};
pub use formats::{FixedBytes, Text};
pub(crate) use named::DeclaredOutput;
pub use named::NamedOutput;
use part_writer::{PIECE, PartWriter};
pub(crate) use resume::OutputDefinition;
pub(crate) use text_field::write_line;
pub use text_field::{TextElement, TextField};

use named::OpenedOutput;

use crate::input::InputPlace;
use crate::state::Save;

/// An output format; chosen with `output` before `reduce`.
///
/// A format decides which methods its [`Output`] has: [`Text`] and [`Records`](crate::records::Records) have
/// `emit`, [`FixedBytes`] has `write`. A custom format adds methods by a trait over [`Output::record`].
///
/// ```
/// use napreduce::output::FixedBytes;
/// use napreduce::Job;
///
/// let job = Job::fixed_records(100)
///     .map(|row: &[u8], out: &mut napreduce::Emit<Vec<u8>, ()>| out.emit(row, ()))
///     .output(FixedBytes { length: 100 })
///     .reduce(|row, copies, out| while copies.next().is_some() { out.write(row) });
/// # let _ = job;
/// ```
///
/// A format may write a header and a footer in each part:
///
/// ```
/// use napreduce::output::OutputFormat;
/// use napreduce::testing::JobTest;
/// use napreduce::{Job, Save, TaskError};
///
/// #[derive(Clone)]
/// struct List;
///
/// impl OutputFormat for List {
///     type Item = ();
///
///     fn begin(&mut self, out: &mut Vec<u8>) {
///         out.extend_from_slice(b"<ol>\n");
///     }
///
///     fn end(&mut self, out: &mut Vec<u8>) {
///         out.extend_from_slice(b"</ol>\n");
///     }
///
///     fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
///         Ok(Save::Stateless)
///     }
/// }
///
/// let list = || {
///     Job::text().map_only_to(List, |line: &str, out| {
///         out.record(|_, buffer| buffer.extend_from_slice(format!("<li>{line}\n").as_bytes()));
///     })
/// };
/// let test = JobTest::new(list).input("to be\nor not\n");
/// assert_eq!(test.run().text(), "<ol>\n<li>to be\n<li>or not\n</ol>\n");
/// test.assert_preemption_safe();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an output format",
    label = "not an output format",
    note = "use a format of `napreduce::output`, such as `Text`; the output path is given when the job runs"
)]
pub trait OutputFormat: Clone + Send + Sync + 'static {
    /// The type as which one record is read back: the `T` of a [`Job<T>`](crate::Job) with this format. It is
    /// `()` if nothing reads the records.
    type Item;

    /// Chooses the form of the output: `true` if it is for another job or for the program itself, `false` if it
    /// is for a person. Ignored by formats of one form.
    fn take_records(&mut self, records: bool) {
        let _ = records;
    }

    /// Appends the header of a part file.
    fn begin(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Appends the state that `restore` needs to continue after the last record; bytes in the buffer are
    /// saved separately. A format that keeps nothing from one record to the next returns [`Save::Stateless`].
    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        let _ = state;
        Ok(Save::Unsupported)
    }

    /// Restores the state that `save` appended; `begin` is not called in that case.
    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let _ = state;
        Err(TaskError::task(
            "this output format saves its state, but does not restore it; implement `restore`",
        ))
    }

    /// Appends the footer of a part file after the last record.
    fn end(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }
}

/// The handle through which user code writes a part file. Errors are kept and end the task after the current
/// record or group.
///
/// ```
/// use napreduce::Job;
/// use napreduce::testing::JobTest;
///
/// let numbered = || Job::text().map_only(|line: &str, out| out.emit(out.records(), line));
/// assert_eq!(JobTest::new(numbered).input("to be\nor not\n").run().text(), "0\tto be\n1\tor not\n");
/// ```
pub struct Output<F> {
    part: PartWriter,
    format: F,
    /// `None` in a reduce.
    input: Option<InputPlace>,
    named: Vec<OpenedOutput>,
}

/// An error from `save` still means that saving is supported.
fn saves(format: &impl OutputFormat) -> bool {
    !matches!(format.save(&mut Vec::new()), Ok(Save::Unsupported))
}

impl<F: OutputFormat> Output<F> {
    fn create(format: F, path: &Path) -> Result<Output<F>, OutputError> {
        let mut output = Output::over(PartWriter::create(path)?, format);
        output.format.begin(output.part.buffer());
        Ok(output)
    }

    /// Returns an output that discards everything.
    fn discarding(format: F) -> Output<F> {
        Output::over(PartWriter::discarding(), format)
    }

    fn over(part: PartWriter, format: F) -> Output<F> {
        Output {
            part,
            format,
            input: None,
            named: Vec::new(),
        }
    }

    /// Counts one record; the format appends its bytes to the buffer now or later.
    ///
    /// ```
    /// use napreduce::output::{OutputFormat, Text};
    /// use napreduce::{Job, Output};
    ///
    /// /// Fields with a custom separator.
    /// #[derive(Clone)]
    /// struct Separated(u8);
    ///
    /// impl OutputFormat for Separated {
    ///     type Item = String;
    /// }
    ///
    /// trait EmitSeparated {
    ///     fn emit(&mut self, fields: &[&str]);
    /// }
    ///
    /// impl EmitSeparated for Output<Separated> {
    ///     fn emit(&mut self, fields: &[&str]) {
    ///         self.record(|Separated(separator), line| {
    ///             for field in fields {
    ///                 line.extend_from_slice(field.as_bytes());
    ///                 line.push(*separator);
    ///             }
    ///             line.push(b'\n');
    ///         });
    ///     }
    /// }
    ///
    /// let job = Job::text().map_only_to(Separated(b';'), |line: &str, out| out.emit(&[line, "seen"]));
    /// # let _ = (job, Text);
    /// ```
    #[inline]
    pub fn record(&mut self, write: impl FnOnce(&mut F, &mut Vec<u8>)) {
        write(&mut self.format, self.part.buffer());
        self.part.end_record();
    }

    /// As `record`, for records that may be invalid; the error fails the task after the current record or
    /// group.
    #[cfg(any(feature = "csv", feature = "json-lines", feature = "parquet"))]
    pub(crate) fn try_record(
        &mut self,
        write: impl FnOnce(&mut F, &mut Vec<u8>) -> Result<(), String>,
    ) {
        let filled = self.part.buffer().len();
        match write(&mut self.format, self.part.buffer()) {
            Ok(()) => self.part.end_record(),
            Err(reason) => {
                self.part.buffer().truncate(filled);
                let reason = format!("row {} cannot be written: {reason}", self.part.records + 1);
                self.part
                    .fail(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
        }
    }

    /// Returns the number of records written so far.
    pub fn records(&self) -> u64 {
        self.part.records
    }

    /// In a job without reduce: returns the position of the current record, as
    /// [`Emit::input`](crate::Emit::input).
    ///
    /// # Panics
    ///
    /// Panics in a reduce, where records have no single position; this fails the task.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let numbered = || Job::text().map_only(|line: &str, out| out.emit(out.input().line(), line));
    /// assert_eq!(JobTest::new(numbered).input("to be\nor not\n").run().text(), "1\tto be\n2\tor not\n");
    /// ```
    pub fn input(&self) -> InputPlace {
        self.input.clone().expect(
            "only a map has an input; emit the place with the record for a reduce to see it",
        )
    }

    /// Returns the place of the current record, if a map writes.
    pub(crate) fn place(&self) -> Option<&InputPlace> {
        self.input.as_ref()
    }

    pub(crate) fn enter(&mut self, place: InputPlace) {
        for opened in &mut self.named {
            opened.writer.enter(place.clone());
        }
        self.input = Some(place);
    }

    /// Returns a named output. Fails the job if it was not declared.
    ///
    /// ```
    /// use napreduce::output::{FixedBytes, NamedOutput};
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Emit, Job};
    ///
    /// /// Words with their counts, and the first letters as bytes in a named output.
    /// let letters = || {
    ///     let first = NamedOutput::new("first", FixedBytes { length: 1 });
    ///     Job::text()
    ///         .map(|word: &str, out: &mut Emit<String, u64>| out.emit(word, 1))
    ///         .named_output(&first)
    ///         .reduce(move |word, counts, out| {
    ///             out.to(&first).write(&word.as_bytes()[..1]);
    ///             out.emit(word, counts.sum());
    ///         })
    /// };
    /// let output = JobTest::new(letters).input("to\nbe\nor\nto\n").run();
    /// assert_eq!((output.text().as_str(), output.named_text("first").as_str()), ("be\t1\nor\t1\nto\t2\n", "bot"));
    /// ```
    #[inline]
    pub fn to<N: OutputFormat>(&mut self, output: &NamedOutput<N>) -> &mut Output<N> {
        let is_same = |opened: &OpenedOutput| {
            let writer: &dyn Any = &*opened.writer;
            opened.declared.name() == output.name() && writer.is::<Output<N>>()
        };
        let number = self
            .named
            .iter()
            .position(is_same)
            .unwrap_or_else(|| self.undeclared(output));
        let writer: &mut dyn Any = &mut *self.named[number].writer;
        writer.downcast_mut().expect("the type was checked above")
    }

    #[cold]
    fn undeclared<N: OutputFormat>(&mut self, output: &NamedOutput<N>) -> usize {
        let reason = format!(
            "the job has no output {:?} of this format; declare it with `named_output` before the reduce, or the map \
             of a job without one",
            output.name()
        );
        self.part
            .fail(io::Error::new(io::ErrorKind::InvalidInput, reason));
        let writer = Box::new(Output::discarding(output.format()));
        self.named.push(OpenedOutput {
            declared: Arc::new(output.clone()),
            writer,
        });
        self.named.len() - 1
    }

    /// Returns the first error of an earlier write, if any.
    pub(crate) fn check(&mut self) -> Result<(), OutputError> {
        self.part.check()?;
        for opened in &mut self.named {
            opened.writer.check()?;
        }
        Ok(())
    }

    /// Saves the state of the format and of the formats of all named outputs.
    pub(crate) fn save_format(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        if self.named.is_empty() {
            return self.format.save(state);
        }
        let mut states = vec![Vec::new(); 1 + self.named.len()];
        let (own, others) = states.split_at_mut(1);
        let mut answers = vec![(self.format.save(&mut own[0])?, &mut own[0])];
        for (opened, state) in self.named.iter().zip(others) {
            answers.push((opened.writer.save_format(state)?, state));
        }
        for (answer, state) in answers {
            match answer {
                Save::Saved => {}
                Save::Stateless => state.clear(),
                Save::Unsupported => return Ok(Save::Unsupported),
            }
        }
        resume::join_states(&states, state);
        Ok(Save::Saved)
    }

    /// Saves the written output in a checkpoint: all pieces so far, in order.
    pub(crate) fn cut(
        self,
        directory: &mut CheckpointDirectory,
    ) -> Result<Vec<OutputPiece>, TaskError> {
        let mut pieces = self.part.cut(directory, PIECE)?;
        for opened in self.named {
            let piece = opened.piece();
            pieces.extend(opened.writer.cut(directory, &piece)?);
        }
        Ok(pieces)
    }

    pub(crate) fn finish(mut self) -> Result<PartOutput, PiecesError> {
        self.format.end(self.part.buffer());
        let part = self.part.finish()?;
        let named = self
            .named
            .into_iter()
            .map(OpenedOutput::finish)
            .collect::<Result<_, _>>()?;
        Ok(PartOutput { named, ..part })
    }
}
