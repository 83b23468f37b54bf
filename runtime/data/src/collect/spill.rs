//! Sorted runs: writing an arena as a run, on another thread while emitting goes on.
//!
//! Owns the thread, the second arena that it hands back, and the names of runs. Does not own merging them
//! (`collect::seal`).

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::budget::{Budget, Grant};
use crate::collect::CollectError;
use crate::combine::{Fold, Keep};
use crate::saved::TaskFile;
use crate::segment::{BLOCK_BYTES, Seal, SegmentShape, SegmentWriter, WriteError};
use crate::sort::{Arena, Sorted};

/// A sealed run. Its file is removed when it is dropped, wherever it was not moved elsewhere or saved.
pub(crate) type Run = TaskFile;

/// What runs of one task have in common.
#[derive(Debug, Clone)]
pub(crate) struct RunShape {
    pub segment: SegmentShape,
    pub scratch: PathBuf,
    pub budget: Budget,
}

impl RunShape {
    /// A writer of run number `number`, and the grant for its buffer.
    pub(crate) fn writer(&self, number: usize) -> Result<(SegmentWriter, Grant), WriteError> {
        self.writer_at(&self.scratch.join(run_name(number)), None)
    }

    /// A writer of any segment of this task, into memory if it is given some.
    pub(crate) fn writer_at(
        &self,
        path: &Path,
        memory: Option<&(PathBuf, u64)>,
    ) -> Result<(SegmentWriter, Grant), WriteError> {
        let buffer = self.budget.write_buffer();
        let grant = self.budget.take(buffer + BLOCK_BYTES);
        Ok((SegmentWriter::create(path, memory, self.segment.clone(), buffer)?, grant))
    }
}

/// The file of run number `number`.
pub(crate) fn run_name(number: usize) -> String {
    format!("run-{number:05}")
}

/// Seals a run. Runs are only read by this task: they need not survive the machine.
pub(crate) fn seal_run(writer: SegmentWriter) -> Result<Run, CollectError> {
    Ok(Run::new(writer.finish(Seal { durable: false })?))
}

/// Writes a sorted arena, partition after partition.
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
    // The combiner stays on its own thread; what it has to fold, it folds when runs are merged.
    write_sorted(&arena.sort(), &Keep, &mut writer)?;
    arena.clear();
    seal_run(writer)
}

/// The thread that writes runs; at most one arena is on its way at a time.
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
        Ok(Spiller { to_thread, from_thread, thread: Some(thread), busy: false })
    }

    /// Hands over a full arena. The one handed over before must have been taken back.
    pub(crate) fn send(&mut self, arena: Arena, number: usize) -> Result<(), CollectError> {
        self.to_thread.send((arena, number)).map_err(|_| self.panicked())?;
        self.busy = true;
        Ok(())
    }

    /// Waits for the arena handed over last, emptied, and its run; `None` when none is on its way.
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
        // A closed channel ends the thread's loop; joined, so that no run appears after the collector is
        // gone.
        let (closed, _) = sync_channel(0);
        self.to_thread = closed;
        if let Some(thread) = self.thread.take() {
            // Its panic was or will be reported by `take_back`; there is nobody left to tell here.
            let _ = thread.join();
        }
    }
}
