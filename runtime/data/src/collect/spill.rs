//! Sorted runs, written by a second thread while the first continues to emit into another arena.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::budget::{Budget, Grant};
use crate::collect::CollectError;
use crate::combine::{Fold, NoFold};
use crate::saved::TaskFile;
use crate::segment::{BLOCK_BYTES, Seal, SegmentShape, SegmentWriter, WriteError};
use crate::sort::{Arena, Sorted};

/// A sealed run; dropping it removes its file unless it was moved or saved.
pub(crate) type Run = TaskFile;

/// Settings shared by all runs of a task.
#[derive(Debug, Clone)]
pub(crate) struct RunShape {
    pub segment: SegmentShape,
    pub scratch: PathBuf,
    pub budget: Budget,
}

impl RunShape {
    /// Creates the writer of run number `number`, with the grant for its buffer.
    pub(crate) fn writer(&self, number: usize) -> Result<(SegmentWriter, Grant), WriteError> {
        self.writer_at(&self.scratch.join(run_name(number)), None)
    }

    /// Creates a writer of any segment of this task; `memory` is a file in memory and its size limit.
    pub(crate) fn writer_at(
        &self,
        path: &Path,
        memory: Option<&(PathBuf, u64)>,
    ) -> Result<(SegmentWriter, Grant), WriteError> {
        let buffer = self.budget.write_buffer();
        let grant = self.budget.take(buffer + BLOCK_BYTES);
        Ok((
            SegmentWriter::create(path, memory, self.segment.clone(), buffer)?,
            grant,
        ))
    }
}

pub(crate) fn run_name(number: usize) -> String {
    format!("run-{number:05}")
}

/// Seals a run without syncing it: only this task reads runs.
pub(crate) fn seal_run(writer: SegmentWriter) -> Result<Run, CollectError> {
    Ok(Run::new(writer.finish(Seal { durable: false })?))
}

/// Writes a sorted arena, partition by partition.
pub(crate) fn write_sorted(
    sorted: &Sorted<'_>,
    fold: &dyn Fold,
    writer: &mut SegmentWriter,
) -> Result<(), CollectError> {
    for partition in 0..writer.shape.partitions {
        if partition > 0 {
            writer.next_partition()?;
        }
        fold.arena(&mut sorted.partition(partition), writer)?;
    }
    Ok(())
}

/// Sorts an arena into run number `number` and empties it.
fn spill(arena: &mut Arena, shape: &RunShape, number: usize) -> Result<Run, CollectError> {
    let (mut writer, _grant) = shape.writer(number)?;
    // The combiner stays on its own thread and folds when runs are merged.
    write_sorted(&arena.sort(), &NoFold, &mut writer)?;
    arena.clear();
    seal_run(writer)
}

/// The spill thread; it has at most one arena at a time.
pub(crate) struct Spiller {
    to_thread: SyncSender<(Arena, usize)>,
    from_thread: Receiver<(Arena, Result<Run, CollectError>)>,
    thread: Option<JoinHandle<()>>,
    busy: bool,
}

impl Spiller {
    pub(crate) fn start(shape: RunShape) -> Result<Spiller, CollectError> {
        let (to_thread, orders) = sync_channel::<(Arena, usize)>(1);
        let (answers, from_thread) = sync_channel(1);
        let work = move || {
            for (mut arena, number) in orders {
                let result = spill(&mut arena, &shape, number);
                if answers.send((arena, result)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("spill".into()).spawn(work);
        let thread = thread.map_err(CollectError::SpillThread)?;
        Ok(Spiller {
            to_thread,
            from_thread,
            thread: Some(thread),
            busy: false,
        })
    }

    /// Hands over a full arena. The previous one must have been taken back.
    pub(crate) fn send(&mut self, arena: Arena, number: usize) -> Result<(), CollectError> {
        self.to_thread
            .send((arena, number))
            .map_err(|_| self.panicked())?;
        self.busy = true;
        Ok(())
    }

    /// Waits for the last arena, now empty, and its run; `None` if there is none.
    pub(crate) fn take_back(&mut self) -> Result<Option<(Arena, Run)>, CollectError> {
        if !self.busy {
            return Ok(None);
        }
        self.busy = false;
        let (arena, run) = self.from_thread.recv().map_err(|_| self.panicked())?;
        Ok(Some((arena, run?)))
    }

    fn panicked(&mut self) -> CollectError {
        let panic = self.thread.take().and_then(|thread| thread.join().err());
        let message = panic.as_ref().and_then(|panic| {
            panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or(panic.downcast_ref::<String>().cloned())
        });
        CollectError::SpillPanicked(message.unwrap_or_else(|| "no message".into()))
    }
}

impl Drop for Spiller {
    fn drop(&mut self) {
        // A closed channel ends the thread's loop. Join it, so that no run appears after the collector is gone.
        let (closed, _) = sync_channel(0);
        self.to_thread = closed;
        if let Some(thread) = self.thread.take() {
            // `take_back` has reported or would have reported its panic.
            let _ = thread.join();
        }
    }
}
