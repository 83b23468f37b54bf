//! The loop over the records of a split, file by file, from its start or from a restored position. It checks
//! for suspend and checkpoint requests before each record.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use napreduce_protocol::printing::print_error;
use napreduce_protocol::{Counter, FailedRecord, InputSplit, MapTask, Split, TaskError};
use napreduce_task::{Boundary, PositionUnit, SuspendHooks, TaskContext};

use super::bad_records;
use crate::input::{InputError, InputFormat, InputPlace, RecordReader, Skip, check_unchanged};

/// The receiver of the records of a split.
pub(crate) trait RecordSink<I: InputFormat>: SuspendHooks {
    fn take(&mut self, record: I::Record<'_>) -> Result<(), TaskError>;

    /// Begins a file after the first, with fresh user code as in a task of its own.
    fn begin(&mut self, path: &Path) -> Result<(), TaskError>;

    /// Sets the source of the position of the following records.
    fn enter(&mut self, place: InputPlace);

    /// Ends the file in user code.
    fn end(&mut self) -> Result<(), TaskError>;

    /// Returns an error kept during the last batch.
    fn check(&mut self) -> Result<(), TaskError>;

    /// Saves the state of user code for a checkpoint here; returns false if that is not supported.
    fn prepare_checkpoint(&mut self) -> Result<bool, TaskError>;
}

/// A position between two records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadPosition {
    /// Index of the part in the split.
    pub(crate) part: usize,
    /// Offset at which a reader of the part is opened.
    pub(crate) offset: u64,
    /// Records at that offset before the position.
    pub(crate) repeated: u64,
    /// Records of the split before the position.
    pub(crate) records: u64,
}

impl ReadPosition {
    /// Returns the position before the first record.
    pub(crate) fn start_of(split: &InputSplit) -> ReadPosition {
        let offset = split.parts.first().map_or(0, |part| part.offset);
        ReadPosition {
            part: 0,
            offset,
            repeated: 0,
            records: 0,
        }
    }

    /// Returns the path of the file.
    pub(crate) fn path(self, task: &MapTask) -> Option<&Path> {
        task.split
            .parts
            .get(self.part)
            .map(|part| part.path.as_path())
    }
}

/// The end of reading a split.
pub(crate) enum Read {
    ToTheEnd,
    /// At a checkpoint.
    UpTo(ReadPosition),
}

/// The reason why a batch ends early.
enum Stop {
    /// The error contains its position.
    Input(InputError),
    User(TaskError),
    /// A checkpoint is due before the record that was just read.
    Checkpoint,
}

impl From<InputError> for Stop {
    fn from(error: InputError) -> Stop {
        Stop::Input(error)
    }
}

/// The input of a map task.
pub(crate) struct MapInput<'a, I> {
    pub(crate) format: &'a I,
    pub(crate) bad_input: Skip,
    pub(crate) task: &'a MapTask,
    pub(crate) context: &'a TaskContext,
    /// The first record.
    pub(crate) place: ReadPosition,
    /// Whether `place` is from a checkpoint.
    pub(crate) restored: bool,
}

/// Reads the split from its place on, part by part and batch by batch, and ends the last part in user code.
/// After each batch it checks the sink for errors and reports progress.
pub(crate) fn read_all<I: InputFormat, S: RecordSink<I>>(
    input: MapInput<'_, I>,
    sink: &mut S,
) -> Result<Read, TaskError> {
    let MapInput {
        format,
        bad_input,
        task,
        context,
        place,
        restored,
    } = input;
    let parts = &task.split.parts;
    context.progress().set_total(task.split.length());
    let mut before = parts.iter().take(place.part).map(|part| part.length).sum();
    let mut loop_state = RecordLoop {
        context,
        place,
        restored,
        declined: false,
        bad_input,
        input: None,
    };
    for (number, part) in parts.iter().enumerate().skip(place.part) {
        context
            .position()
            .enter(part.path.display().to_string(), PositionUnit::Byte);
        let stamp = task.split.stamps.get(number);
        check_unchanged(part, stamp)?;
        if number > place.part {
            loop_state.place = ReadPosition {
                part: number,
                offset: part.offset,
                ..loop_state.place
            };
            sink.begin(&part.path)?;
        }
        let read = read_part::<I, S>(format, part, before, &mut loop_state, sink);
        #[cfg(feature = "storage")]
        crate::input::count_storage(context.counters());
        if let Some(place) = read? {
            return Ok(Read::UpTo(place));
        }
        // Later errors (in the last folds and the mapper's finish) may concern any record of the part.
        context.position().at_range(part.offset, part.end());
        check_unchanged(part, stamp)?;
        sink.end()?;
        sink.check()?;
        before += part.length;
    }
    if restored {
        context.restored();
    }
    if parts.len() > 1 {
        context
            .position()
            .enter(task.split.to_string(), PositionUnit::Byte);
        context.position().at_range(0, task.split.length());
    }
    context
        .counters()
        .add(Counter::MapInputRecords, loop_state.place.records);
    Ok(Read::ToTheEnd)
}

/// Reads one part, after `before` bytes of the split. Returns the position of a checkpoint, if there was one.
fn read_part<I: InputFormat, S: RecordSink<I>>(
    format: &I,
    part: &Split,
    before: u64,
    loop_state: &mut RecordLoop<'_>,
    sink: &mut S,
) -> Result<Option<ReadPosition>, TaskError> {
    let context = loop_state.context;
    let mut reader = format.open_at(part, loop_state.place.offset, context.memory() as usize)?;
    context.progress().set_reading(before, reader.position());
    let place = InputPlace::new(part, reader.byte_position(), context.memory() as usize);
    loop_state.input = Some(place.clone());
    sink.enter(place.clone());
    loop {
        let batch = catch_unwind(AssertUnwindSafe(|| {
            reader.read_batch(&mut |record: I::Record<'_>| loop_state.pass::<I, S>(record, sink))
        }));
        let more = match batch {
            Ok(Ok(more)) => more,
            Ok(Err(Stop::Input(error))) => {
                return Err(error.in_line(|offset| place.line_of(offset)).into());
            }
            Ok(Err(Stop::User(error))) => return Err(located(error, &place, &reader.place())),
            Ok(Err(Stop::Checkpoint)) => {
                sink.check()?;
                return Ok(Some(loop_state.at(&reader)));
            }
            Err(panic) => {
                // A panic message includes the record at which it happened.
                match place.describe() {
                    Some(described) => {
                        context
                            .position()
                            .set_record(described, failed_record(&place, &reader.place()));
                    }
                    None => context.position().at(reader.offset()),
                }
                resume_unwind(panic)
            }
        };
        sink.check()?;
        context.progress().set_done(before + reader.consumed());
        if !more {
            break;
        }
    }
    context.progress().set_reading(0, None);
    if context.is_asked() && loop_state.is_cut(sink)? {
        return Ok(Some(loop_state.at(&reader)));
    }
    context
        .counters()
        .add(Counter::InputBytes, reader.consumed());
    Ok(None)
}

/// The handling of each record.
struct RecordLoop<'a> {
    context: &'a TaskContext,
    /// Its offset is that of the start; `repeated` counts down.
    place: ReadPosition,
    /// True until the first record after a restore is mapped.
    restored: bool,
    /// A checkpoint was requested but is not possible.
    declined: bool,
    /// The handling of bad records.
    bad_input: Skip,
    input: Option<InputPlace>,
}

impl RecordLoop<'_> {
    #[inline(always)]
    fn pass<I: InputFormat, S: RecordSink<I>>(
        &mut self,
        record: I::Record<'_>,
        sink: &mut S,
    ) -> Result<(), Stop> {
        if self.restored {
            return self.pass_restored(record, sink);
        }
        if self.context.is_asked() && self.is_cut(sink).map_err(Stop::User)? {
            return Err(Stop::Checkpoint);
        }
        self.place.records += 1;
        match sink.take(record) {
            Ok(()) => Ok(()),
            Err(error) => self.pass_bad(error),
        }
    }

    /// Not inlined, so that the loop over good records stays small.
    #[cold]
    #[inline(never)]
    fn pass_bad(&self, error: TaskError) -> Result<(), Stop> {
        bad_records::pass(error, self.bad_input, self.input.as_ref()).map_err(Stop::User)
    }

    /// Skips the records mapped before the checkpoint, and reports the first one after it.
    #[cold]
    fn pass_restored<I: InputFormat, S: RecordSink<I>>(
        &mut self,
        record: I::Record<'_>,
        sink: &mut S,
    ) -> Result<(), Stop> {
        if let Some(left) = self.place.repeated.checked_sub(1) {
            self.place.repeated = left;
            return Ok(());
        }
        self.restored = false;
        self.pass::<I, S>(record, sink)?;
        self.context.restored();
        Ok(())
    }

    #[cold]
    fn is_cut<I: InputFormat, S: RecordSink<I>>(
        &mut self,
        sink: &mut S,
    ) -> Result<bool, TaskError> {
        if !self.context.tell(None)
            || self.context.boundary(sink)? == Boundary::GoOn
            || self.declined
        {
            return Ok(false);
        }
        let prepared = sink.prepare_checkpoint()?;
        self.declined = !prepared;
        if self.declined {
            print_error(format_args!(
                "{}: not checkpointed: the mapper does not implement `save`; continuing",
                self.context.attempt()
            ));
        }
        Ok(prepared)
    }

    fn at<I: InputFormat>(&self, reader: &impl RecordReader<I>) -> ReadPosition {
        ReadPosition {
            offset: reader.offset(),
            repeated: reader.records_before(),
            ..self.place
        }
    }
}

/// Adds the record to an error; `of_reader` is its place in a format without positions.
fn located(error: TaskError, place: &InputPlace, of_reader: &str) -> TaskError {
    if error.is_located && error.record.is_some() {
        return error;
    }
    let record = failed_record(place, of_reader);
    if error.is_located {
        return error.with_record(record);
    }
    let described = place
        .describe()
        .unwrap_or_else(|| format!("{} {of_reader}", place.path().display()));
    let message = format!("{}, reading {described}", error.message);
    TaskError { message, ..error }.with_record(record)
}

/// Returns the record at a place; `of_reader` is the place in a format without positions.
fn failed_record(place: &InputPlace, of_reader: &str) -> FailedRecord {
    let input = place.path().display().to_string();
    let position = match place.describe() {
        Some(_) => {
            let shown = place.to_string();
            shown
                .strip_prefix(&input)
                .map_or(shown.as_str(), str::trim_start)
                .to_owned()
        }
        None => of_reader.to_owned(),
    };
    FailedRecord::new(input, position, place.quote().as_deref())
}
