//! A guest reduce: writes the frames of each map to a file, then reduces these as under a worker.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;

use napreduce_data::{AssemblyError, PartitionExtent, SegmentAssembly};
use napreduce_engine::{AttemptId, TaskId, TaskKind};
use napreduce_protocol::{Digest, ReduceTask, TaskError};
use napreduce_task::Definitions;
use sha2::{Digest as _, Sha256};

use super::map::write_error;
use super::{Guest, GuestError};
use crate::forms::{
    GuestFrameError, GuestFrameKind, GuestFrameReader, GuestFrameSequence, GuestReport, MapsReport,
};

/// Bytes per read of the stream.
const READ_BYTES: usize = 256 << 10;

pub(super) fn run(
    guest: &Guest,
    definitions: &dyn Definitions,
    input: File,
    out: &mut File,
) -> Result<(), GuestError> {
    let mut intake = Intake::new(guest);
    let mut reader = GuestFrameReader::new(BufReader::with_capacity(READ_BYTES, input));
    let mut sequence =
        GuestFrameSequence::new(guest.arguments.task, guest.plan.maps(), guest.plan.reduces);
    while let Some((frame, payload)) = reader.next_frame()? {
        let map = frame.map;
        match sequence.accept(&frame)? {
            GuestFrameKind::Extent => intake.begin(map, payload)?,
            GuestFrameKind::Chunk => intake.take(map, payload)?,
            GuestFrameKind::Report => intake.report(map, payload)?,
        }
    }
    sequence.end()?;
    let Intake {
        inputs,
        described,
        maps,
        frames,
        ..
    } = intake.end()?;
    let inputs: Vec<(AttemptId, PathBuf)> = inputs.into_values().collect();
    let (part, context) = guest.work(definitions, &name_of(&described), |body, round| {
        let task = ReduceTask {
            partition: guest.arguments.task,
            inputs: inputs.clone(),
            consolidated: Vec::new(),
            inputs_are_partial: false,
            compress: guest.plan.compress,
            output: guest.arguments.part.clone().unwrap_or_default(),
            scratch: round.scratch.clone(),
            checkpoint: round.checkpoint.clone(),
            restore: round.restore.clone(),
            durable: round.durable,
        };
        body.run_reduce(&task, &round.context)
    })?;
    let mut report = guest.report(&context, frames, maps, Some(part))?;
    report.push(b'\n');
    out.write_all(&report).map_err(write_error)
}

/// Returns a name for the input from all maps: their attempts and the checksums of their blocks.
fn name_of(described: &BTreeMap<u32, Digest>) -> String {
    let mut hasher = Sha256::new();
    for (map, Digest(digest)) in described {
        hasher.update(map.to_le_bytes());
        hasher.update(digest);
    }
    Digest(hasher.finalize().into()).to_string()
}

/// The received input of a reduce.
struct Intake<'a> {
    guest: &'a Guest,
    /// Incomplete maps.
    open: BTreeMap<u32, (AttemptId, SegmentAssembly)>,
    /// Complete maps.
    inputs: BTreeMap<u32, (AttemptId, PathBuf)>,
    /// The extent of each map.
    described: BTreeMap<u32, Digest>,
    maps: MapsReport,
    frames: u64,
}

impl<'a> Intake<'a> {
    fn new(guest: &'a Guest) -> Intake<'a> {
        let open = BTreeMap::new();
        let inputs = BTreeMap::new();
        let described = BTreeMap::new();
        Intake {
            guest,
            open,
            inputs,
            described,
            maps: MapsReport::default(),
            frames: 0,
        }
    }

    fn begin(&mut self, map: u32, described: &[u8]) -> Result<(), GuestError> {
        self.frames += 1;
        let bad = |why| GuestFrameError::BadExtent { map, why };
        let extent = PartitionExtent::decode(described).map_err(bad)?;
        let attempt = self.writer_of(map, &extent).map_err(bad)?;
        self.described
            .insert(map, Digest(Sha256::digest(described).into()));
        let path = self.path(map);
        let assembly = SegmentAssembly::create(&path, extent).map_err(|error| {
            TaskError::retryable(format!("cannot store the output of map {map}: {error}"))
        })?;
        self.keep(map, attempt, assembly)
    }

    /// Returns the attempt that wrote an extent, after checking the extent.
    fn writer_of(&self, map: u32, extent: &PartitionExtent) -> Result<AttemptId, String> {
        let Guest {
            plan, arguments, ..
        } = self.guest;
        let attempt: AttemptId = extent.label().parse().map_err(|error| format!("{error}"))?;
        if attempt.task
            != (TaskId {
                job: plan.job,
                kind: TaskKind::Map,
                index: map,
            })
        {
            return Err(format!("it belongs to {attempt}"));
        }
        let own = (arguments.task, plan.reduces);
        let found = (extent.partition(), extent.partitions());
        if own != found {
            return Err(format!(
                "it belongs to partition {} of {} instead of {} of {}",
                found.0, found.1, own.0, own.1
            ));
        }
        match extent.first_block() {
            0 => Ok(attempt),
            block => Err(format!("it begins with block {block}")),
        }
    }

    fn take(&mut self, map: u32, bytes: &[u8]) -> Result<(), GuestError> {
        self.frames += 1;
        let Some((attempt, mut assembly)) = self.open.remove(&map) else {
            let why = format!("{} bytes more than its extent describes", bytes.len());
            return Err(GuestFrameError::BadBlock { map, why }.into());
        };
        assembly
            .accept(bytes)
            .map_err(|error| assembly_error(map, &error))?;
        self.keep(map, attempt, assembly)
    }

    /// Seals a complete map at once, so that its file is closed.
    fn keep(
        &mut self,
        map: u32,
        attempt: AttemptId,
        assembly: SegmentAssembly,
    ) -> Result<(), GuestError> {
        match assembly.missing() {
            0 => {
                let sealed = assembly
                    .seal()
                    .map_err(|error| assembly_error(map, &error))?;
                self.inputs.insert(map, (attempt, sealed.path));
            }
            _ => {
                self.open.insert(map, (attempt, assembly));
            }
        }
        Ok(())
    }

    fn report(&mut self, map: u32, text: &[u8]) -> Result<(), GuestError> {
        let bad = |why| GuestFrameError::BadReport { map, why };
        let report = GuestReport::from_json(text).map_err(|error| bad(error.to_string()))?;
        if report.task
            != (TaskId {
                job: self.guest.plan.job,
                kind: TaskKind::Map,
                index: map,
            })
        {
            return Err(bad(format!("it belongs to {}", report.task)).into());
        }
        self.maps.indices.push(map);
        self.maps.counters.merge(&report.counters);
        self.maps.frames = self.maps.frames.saturating_add(report.frames);
        Ok(())
    }

    fn end(mut self) -> Result<Intake<'a>, GuestError> {
        self.maps.indices.sort_unstable();
        match self.open.pop_first() {
            // Sealing fails with the missing amount.
            Some((map, (_, assembly))) => match assembly.seal() {
                Err(error) => Err(assembly_error(map, &error)),
                Ok(_) => Err(GuestFrameError::BadBlock {
                    map,
                    why: "blocks are missing".to_owned(),
                }
                .into()),
            },
            None => Ok(self),
        }
    }

    fn path(&self, map: u32) -> PathBuf {
        self.guest.scratch(&format!("map-{map}.segment"))
    }
}

/// Converts an error: the received data differs from the sealed data, or cannot be stored here.
fn assembly_error(map: u32, error: &AssemblyError) -> GuestError {
    match error {
        AssemblyError::Write(_) => TaskError::retryable(error.to_string()).into(),
        _ => GuestFrameError::BadBlock {
            map,
            why: error.to_string(),
        }
        .into(),
    }
}
