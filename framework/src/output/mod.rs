//! Output formats: how what a reduce (or a map without reduce) emits becomes the bytes of a part file.
//!
//! Owns `Output`, the handle that user code writes to, and the formats. Does not own where part files live nor when
//! they are promoted: that is the commit protocol of the live runtime.
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

mod part_writer;
mod pieces;
mod text_field;

use std::io;
use std::path::Path;

use napreduce_live::{CheckpointDirectory, OutputPiece, PartOutput, TaskError};

pub(crate) use part_writer::CutError;
pub(crate) use part_writer::OutputError;
use part_writer::PartWriter;
pub(crate) use pieces::{Pieces, PiecesError};
pub use text_field::TextField;

use crate::state::Save;

/// How records become bytes; chosen with `output` before `reduce`.
///
/// A format decides which methods its [`Output`] has: [`Text`] and [`Records`](crate::records::Records) give
/// `emit`, [`FixedBytes`] gives `write`. A format of one's own adds methods by a trait over
/// [`Output::record`].
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
/// What stands at the beginning and the end of each part is the format's own:
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
pub trait OutputFormat: Clone + Send + Sync + 'static {
    /// Appends what stands at the start of every part file.
    fn begin(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Appends to `state` what `restore` needs to go on from here, between two records; bytes that were appended to a
    /// buffer are kept apart. A format that keeps nothing from one record to the next answers [`Save::Stateless`].
    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        let _ = state;
        Ok(Save::Unsupported)
    }

    /// Takes over what `save` appended; `begin` is not called then.
    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let _ = state;
        Err(TaskError::task(
            "this output format saves its state, but does not restore it; implement `restore`",
        ))
    }

    /// Appends what is still to be written when the last record has been.
    fn end(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }
}

/// Lines of `key TAB value`; a unit value leaves out the tab. The default.
///
/// Keys and values are written as they are: a tab or newline inside one is not escaped.
///
/// ```
/// use napreduce::Job;
/// use napreduce::output::Text;
/// use napreduce::testing::JobTest;
///
/// let job = || Job::text().map_only_to(Text, |line: &str, out| out.emit((line.len(), line), Some(1.5)));
/// assert_eq!(JobTest::new(job).input("to be\n").run().text(), "5\tto be\t1.5\n");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Text;

/// Records of one length and nothing between them.
///
/// ```
/// use napreduce::Job;
/// use napreduce::output::FixedBytes;
/// use napreduce::testing::JobTest;
///
/// let swapped = || {
///     Job::fixed_records(4).map_only_to(FixedBytes { length: 4 }, |record: &[u8], out| {
///         let (start, rest) = record.split_at(2);
///         out.write_parts(rest, start);
///     })
/// };
/// assert_eq!(JobTest::new(swapped).input("abcdefgh").run().text(), "cdabghef");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct FixedBytes {
    /// Length of each record in bytes; at least 1.
    pub length: usize,
}

impl OutputFormat for Text {
    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Stateless)
    }
}

impl OutputFormat for FixedBytes {
    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Stateless)
    }
}

/// What user code writes a part file through. Errors are kept and end the task after the current record or group.
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
}

impl<F: OutputFormat> Output<F> {
    pub(crate) fn create(format: F, path: &Path) -> Result<Output<F>, OutputError> {
        let mut output = Output { part: PartWriter::create(path)?, format };
        output.format.begin(output.part.buffer());
        Ok(output)
    }

    /// An output that goes nowhere.
    pub(crate) fn discarding(format: F) -> Output<F> {
        Output { part: PartWriter::discarding(), format }
    }

    /// Goes on after pieces that attempts before have written; the format has been restored.
    pub(crate) fn after(format: F, pieces: Pieces, path: &Path) -> Result<Output<F>, OutputError> {
        Ok(Output { part: PartWriter::after(pieces, path)?, format })
    }

    /// Counts one record, whose bytes the format appends to the buffer now or later.
    ///
    /// ```
    /// use napreduce::output::{OutputFormat, Text};
    /// use napreduce::{Job, Output};
    ///
    /// /// Fields with a separator of one's own.
    /// #[derive(Clone)]
    /// struct Separated(u8);
    ///
    /// impl OutputFormat for Separated {}
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

    /// As `record`, for what may not be writable; the reason then fails the task after the current record or group.
    #[cfg(any(feature = "csv", feature = "json-lines"))]
    pub(crate) fn try_record(&mut self, write: impl FnOnce(&mut F, &mut Vec<u8>) -> Result<(), String>) {
        let filled = self.part.buffer().len();
        match write(&mut self.format, self.part.buffer()) {
            Ok(()) => self.part.end_record(),
            Err(reason) => {
                self.part.buffer().truncate(filled);
                let reason = format!("row {} cannot be written: {reason}", self.part.records + 1);
                self.part.fail(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
        }
    }

    /// Records written so far.
    pub fn records(&self) -> u64 {
        self.part.records
    }

    /// The first error of an earlier write, if there was one.
    pub(crate) fn check(&mut self) -> Result<(), OutputError> {
        self.part.check()
    }

    /// What the format answers when it is to save its state.
    pub(crate) fn save_format(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        self.format.save(state)
    }

    /// Leaves what was written in a checkpoint: all pieces so far, in order.
    pub(crate) fn cut(self, directory: &mut CheckpointDirectory) -> Result<Vec<OutputPiece>, CutError> {
        self.part.cut(directory)
    }

    pub(crate) fn finish(mut self) -> Result<PartOutput, PiecesError> {
        self.format.end(self.part.buffer());
        self.part.finish()
    }
}

impl Output<Text> {
    /// Writes one line: the key, a tab and the value; only the key when the value is empty by type, as `()` is.
    #[inline]
    pub fn emit<K: TextField, V: TextField>(&mut self, key: K, value: V) {
        self.record(|_, buffer| {
            key.write(buffer);
            if !V::EMPTY {
                buffer.push(b'\t');
                value.write(buffer);
            }
            buffer.push(b'\n');
        });
    }
}

impl Output<FixedBytes> {
    /// Writes one record.
    #[inline]
    pub fn write(&mut self, record: &[u8]) {
        self.write_parts(record, &[]);
    }

    /// Writes one record given in two pieces, so that they need not be joined first.
    #[inline]
    pub fn write_parts(&mut self, start: &[u8], rest: &[u8]) {
        if start.len() + rest.len() != self.format.length {
            self.part.fail(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "record {} has {} bytes where the output format wants {}",
                    self.part.records,
                    start.len() + rest.len(),
                    self.format.length
                ),
            ));
            return;
        }
        self.record(|_, buffer| {
            buffer.extend_from_slice(start);
            buffer.extend_from_slice(rest);
        });
    }
}
