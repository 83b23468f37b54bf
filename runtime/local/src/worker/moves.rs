//! Copies map outputs to storage that outlives this worker, one after the other. A copy gets its name
//! when it is complete. A failed copy is logged, and the output is lost with the worker.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use napreduce_engine::AttemptId;
use tokio::task::JoinSet;

use crate::world::Tasks;

/// Bytes between checks whether the worker is stopping.
const PIECE_BYTES: u64 = 8 << 20;

/// An output to copy.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) attempt: AttemptId,
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
    /// Whether to sync the copy to disk.
    pub(super) durable: bool,
}

/// The copies of one worker.
#[derive(Debug)]
pub(super) struct Moves {
    tasks: Tasks,
    waiting: VecDeque<Move>,
    /// At most one at a time.
    copying: JoinSet<(AttemptId, io::Result<()>)>,
    ends: Arc<AtomicBool>,
}

impl Moves {
    pub(super) fn new(tasks: Tasks) -> Moves {
        Moves {
            tasks,
            waiting: VecDeque::new(),
            copying: JoinSet::new(),
            ends: Arc::default(),
        }
    }

    pub(super) fn add(&mut self, wanted: Move) {
        self.waiting.push_back(wanted);
        self.begin();
    }

    fn begin(&mut self) {
        if !self.copying.is_empty() {
            return;
        }
        if let Some(next) = self.waiting.pop_front() {
            let ends = Arc::clone(&self.ends);
            let copying = move || (next.attempt, next.run(&ends));
            self.tasks.blocking_in(&mut self.copying, copying);
        }
    }

    /// Waits for the next copied output; `None` if nothing is being copied, and after a failed copy, which is
    /// logged.
    pub(super) async fn next(&mut self) -> Option<AttemptId> {
        // A panic has been printed.
        let (attempt, done) = self.copying.join_next().await?.ok()?;
        self.begin();
        match done {
            Ok(()) => Some(attempt),
            Err(error) => {
                tracing::warn!(target: "worker", %attempt, "its output was not copied and will be recomputed when this worker has left: {error}");
                None
            }
        }
    }

    /// Cancels the copies and waits for the current one.
    pub(super) async fn end(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.waiting.clear();
        while self.copying.join_next().await.is_some() {}
    }
}

impl Move {
    /// Copies the output. Blocking.
    fn run(&self, ends: &AtomicBool) -> io::Result<()> {
        if self.to.exists() {
            return Ok(());
        }
        let unfinished = self.to.with_extension("moving");
        let copied = copy(&self.from, &unfinished, self.durable, ends)
            .and_then(|()| fs::rename(&unfinished, &self.to))
            .map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("cannot write {}: {error}", self.to.display()),
                )
            });
        if copied.is_err() {
            // If this fails, the file is removed with those of its job.
            let _ = fs::remove_file(&unfinished);
        }
        copied
    }
}

fn copy(from: &Path, to: &Path, durable: bool, ends: &AtomicBool) -> io::Result<()> {
    let mut source = File::open(from)?;
    let length = source.metadata()?.len();
    let mut target = File::create(to)?;
    let mut copied = 0;
    while copied < length {
        if ends.load(Ordering::Relaxed) {
            return Err(io::Error::other("the worker is stopping"));
        }
        match io::copy(&mut source.by_ref().take(PIECE_BYTES), &mut target)? {
            0 => {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "its output was truncated meanwhile",
                ));
            }
            bytes => copied += bytes,
        }
    }
    if durable { target.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{JobId, TaskId, TaskKind};

    use super::*;
    use crate::world::World;

    fn attempt(index: u32) -> AttemptId {
        AttemptId {
            task: TaskId {
                job: JobId(1),
                kind: TaskKind::Map,
                index,
            },
            number: 1,
        }
    }

    fn moving(folder: &Path, index: u32, bytes: usize) -> Move {
        let from = folder.join(format!("{index}.segment"));
        let to = folder.join(format!("to/{index}.segment"));
        fs::write(&from, vec![index as u8; bytes]).expect("written");
        Move {
            attempt: attempt(index),
            from,
            to,
            durable: index == 1,
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn failed_copy_does_not_delay_other_copies() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("to")).expect("a folder");
        let mut moves = Moves::new(World::real().tasks);
        for (index, bytes) in [(0, 9 << 20), (1, 0), (2, 5), (3, 7)] {
            let mut wanted = moving(folder.path(), index, bytes);
            if index == 2 {
                wanted.to = folder.path().join("missing/2.segment");
            }
            moves.add(wanted);
        }
        let mut moved = Vec::new();
        while !moves.copying.is_empty() {
            moved.extend(moves.next().await);
        }
        assert_eq!(moved, [attempt(0), attempt(1), attempt(3)]);
        for index in [0, 1, 3] {
            let name = format!("{index}.segment");
            let from = folder.path().join(&name);
            let to = folder.path().join("to").join(&name);
            assert!(
                fs::read(from).expect("it stays") == fs::read(to).expect("it is there"),
                "{index}"
            );
        }
        assert_eq!(
            fs::read_dir(folder.path().join("to"))
                .expect("a folder")
                .count(),
            3
        );
    }

    #[tokio::test(flavor = "current_thread")]
    async fn stopping_worker_leaves_no_partial_copy() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("to")).expect("a folder");
        let wanted = moving(folder.path(), 0, 5);
        wanted.run(&AtomicBool::new(true)).expect_err("it ends");
        let mut moves = Moves::new(World::real().tasks);
        moves.ends.store(true, Ordering::Relaxed);
        moves.add(wanted);
        moves.end().await;
        assert_eq!(
            fs::read_dir(folder.path().join("to"))
                .expect("a folder")
                .count(),
            0
        );
    }
}
