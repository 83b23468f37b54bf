//! The path of a record from emit to a run: partition, arena, spill. The buffer keeps the first error and
//! drops all later records, so that the hot path returns nothing.

use crate::collect::CollectError;
use crate::collect::spill::{Run, RunShape, Spiller, seal_run};
use crate::key::{self, quote};
use crate::partition::Partitioner;
use crate::record::RecordEncoding;
use crate::sort::{Arena, Record};

pub(crate) struct SortBuffer {
    encoding: RecordEncoding,
    partitioner: Partitioner,
    partitions: u32,
    /// The arena being filled; `None` after an error.
    arena: Option<Arena>,
    arena_max: usize,
    spiller: Option<Spiller>,
    runs: Vec<Run>,
    /// The number of the next run.
    runs_begun: usize,
    pub(super) shape: RunShape,
    failure: Option<CollectError>,
    /// Set by the first error; later records are dropped.
    failed: bool,
    /// Records added so far.
    pub(super) records: u64,
}

/// The collected records, ready to be sealed.
pub(crate) struct Parts {
    /// Sealed runs in the order of arrival.
    pub runs: Vec<Run>,
    /// Records that arrived after the last run.
    pub arena: Option<Arena>,
    /// The number of the next run.
    pub runs_begun: usize,
    pub shape: RunShape,
}

impl SortBuffer {
    pub(crate) fn new(shape: RunShape, partitioner: Partitioner, with_table: bool) -> SortBuffer {
        let arena_max = shape.budget.arena_max(with_table);
        let partitions = partitioner.partitions();
        let encoding = shape.segment.encoding;
        let mut buffer = SortBuffer {
            encoding,
            partitioner,
            partitions,
            arena: None,
            arena_max,
            spiller: None,
            runs: Vec::new(),
            runs_begun: 0,
            shape,
            failure: None,
            failed: false,
            records: 0,
        };
        buffer.arena = Some(buffer.new_arena());
        buffer
    }

    /// Continues with the runs of earlier attempts, whose numbers are below `runs_begun`.
    pub(crate) fn resume(&mut self, runs: Vec<Run>, runs_begun: usize) {
        self.runs = runs;
        self.runs_begun = runs_begun;
    }

    fn new_arena(&self) -> Arena {
        let budget = &self.shape.budget;
        Arena::new(
            self.partitions,
            self.encoding,
            self.arena_max,
            budget.arena_max(false),
            budget.take(0),
        )
    }

    /// Raises the arena limit after the combine table was dropped.
    pub(crate) fn take_table_share(&mut self) {
        self.arena_max = self.shape.budget.arena_max(false);
        if let Some(arena) = &mut self.arena {
            arena.set_max(self.arena_max);
        }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        if let RecordEncoding::Fixed {
            key: expected_key,
            value: expected_value,
        } = self.encoding
            && (key.len() != expected_key as usize || value.len() != expected_value as usize)
        {
            return self.not_fixed(key.len(), value.len());
        }
        let head = match self.encoding {
            RecordEncoding::Fixed { .. } => key::head(key),
            RecordEncoding::Variable => key::head_of_any_length(key),
        };
        let partition = self.partitioner.partition(key, head);
        if partition >= self.partitions {
            return self.out_of_range(partition, key);
        }
        let fitted = match &mut self.arena {
            Some(arena) => arena.push(self.encoding, partition, Record { key, head, value }),
            None => false,
        };
        if !fitted {
            self.make_room(partition, key, value);
        }
        self.records += 1;
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, partition: u32, key: &[u8], value: &[u8]) {
        if self.failed {
            return;
        }
        let result = match &self.arena {
            Some(arena) if arena.could_hold(key.len(), value.len()) => self.spill().map(|()| {
                let arena = self.arena.as_mut().expect("a spill leaves an empty arena");
                let record = Record {
                    key,
                    head: key::head(key),
                    value,
                };
                let fitted = arena.push(self.encoding, partition, record);
                assert!(
                    fitted,
                    "an empty arena must accept what `could_hold` accepts"
                );
            }),
            _ => self.write_alone(partition, key, value),
        };
        if let Err(failure) = result {
            self.fail(failure);
        }
    }

    /// Sends the full arena to the spiller and continues with the other one.
    fn spill(&mut self) -> Result<(), CollectError> {
        if self.spiller.is_none() {
            self.spiller = Some(Spiller::start(self.shape.clone())?);
        }
        let mut next = match self.wait_for_spill()? {
            Some(arena) => arena,
            None => self.new_arena(),
        };
        next.set_max(self.arena_max);
        if let (Some(spiller), Some(full)) = (&mut self.spiller, self.arena.replace(next)) {
            spiller.send(full, self.runs_begun)?;
            self.runs_begun += 1;
        }
        Ok(())
    }

    fn wait_for_spill(&mut self) -> Result<Option<Arena>, CollectError> {
        let Some(spiller) = &mut self.spiller else {
            return Ok(None);
        };
        let Some((arena, run)) = spiller.take_back()? else {
            return Ok(None);
        };
        self.runs.push(run);
        Ok(Some(arena))
    }

    /// Writes a record that exceeds every arena directly to a run of its own.
    fn write_alone(
        &mut self,
        partition: u32,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), CollectError> {
        if self.arena.as_ref().is_some_and(|arena| !arena.is_empty()) {
            self.spill()?;
        }
        // Runs are merged in order of arrival, so earlier records come first.
        drop(self.wait_for_spill()?);
        let (mut writer, _grant) = self.shape.writer(self.runs_begun)?;
        self.runs_begun += 1;
        for _ in 0..partition {
            writer.next_partition()?;
        }
        writer.append(key, value)?;
        self.runs.push(seal_run(writer)?);
        Ok(())
    }

    /// Ends collecting; returns the first error if there was one.
    pub(crate) fn into_parts(mut self) -> Result<Parts, CollectError> {
        self.check()?;
        if self.failed {
            return Err(CollectError::AlreadyFailed);
        }
        drop(self.wait_for_spill()?);
        let arena = self.arena.take().filter(|arena| !arena.is_empty());
        Ok(Parts {
            runs: self.runs,
            arena,
            runs_begun: self.runs_begun,
            shape: self.shape,
        })
    }

    /// Returns the first error, once.
    pub(crate) fn check(&mut self) -> Result<(), CollectError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Records the first error and stops collecting.
    #[cold]
    pub(crate) fn fail(&mut self, failure: CollectError) {
        if !self.failed {
            self.failed = true;
            self.failure = Some(failure);
        }
        self.arena = None;
    }

    #[cold]
    #[inline(never)]
    fn not_fixed(&mut self, key: usize, value: usize) {
        if let RecordEncoding::Fixed {
            key: expected_key,
            value: expected_value,
        } = self.encoding
        {
            self.fail(CollectError::NotFixed {
                key,
                value,
                expected_key,
                expected_value,
            });
        }
    }

    #[cold]
    #[inline(never)]
    fn out_of_range(&mut self, chosen: u32, key: &[u8]) {
        let partitions = self.partitions;
        self.fail(CollectError::PartitionOutOfRange {
            chosen,
            partitions,
            key: quote(key),
        });
    }
}
