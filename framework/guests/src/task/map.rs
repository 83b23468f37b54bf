//! A guest map: runs as under a worker, then writes its sealed output as frames, followed by its report.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use napreduce_data::{PartitionExtent, SegmentIndex};
use napreduce_engine::TaskKind;
use napreduce_protocol::{MapTask, TaskError};
use napreduce_task::{Definitions, MapResult, TaskRunner};

use super::rounds::Round;
use super::{Guest, GuestError};
use crate::forms::{GUEST_FRAME_BYTES_MAX, GuestFrame, MapsReport};

pub(super) fn run(
    guest: &Guest,
    definitions: &dyn Definitions,
    out: &mut File,
) -> Result<(), GuestError> {
    let segment = guest.scratch("map.segment");
    // The splits of a plan never change, so any name identifies them.
    let (part, context) = guest.work(definitions, "split", |body, round| {
        map(guest, body, round, &segment)
    })?;
    let mut out = BufWriter::new(out);
    let frames = match guest.plan.reduces {
        0 => 0,
        _ => send(&segment, guest, &mut out)?,
    };
    let report = guest.report(&context, frames, MapsReport::default(), part)?;
    let length = u32::try_from(report.len())
        .ok()
        .filter(|length| *length <= GUEST_FRAME_BYTES_MAX);
    let length = length
        .ok_or_else(|| TaskError::fatal("the counters of this task exceed the size of a report"))?;
    GuestFrame::of_report(guest.arguments.task, length)
        .write(&report, &mut out)
        .map_err(write_error)?;
    out.flush().map_err(write_error)
}

/// Runs the map. It writes a part in a map-only job, otherwise the segment.
fn map(
    guest: &Guest,
    body: &dyn TaskRunner,
    round: &Round,
    segment: &Path,
) -> Result<MapResult, TaskError> {
    let plan = &guest.plan;
    let arguments = &guest.arguments;
    let no_task = || {
        TaskError::fatal(format!(
            "the plan has no {} {}",
            TaskKind::Map,
            arguments.task
        ))
    };
    let split = plan
        .splits
        .get(arguments.task as usize)
        .ok_or_else(no_task)?;
    let task = MapTask {
        split: split.clone(),
        partitions: plan.reduces,
        cuts: plan.cuts.clone(),
        compress: plan.compress,
        output: arguments.part.clone().unwrap_or_else(|| segment.to_owned()),
        memory_file: None,
        scratch: round.scratch.clone(),
        checkpoint: round.checkpoint.clone(),
        restore: round.restore.clone(),
        durable: round.durable,
    };
    body.run_map(&task, &round.context)
}

/// Converts a write error: the reader of the frames is gone.
pub(super) fn write_error(error: io::Error) -> GuestError {
    GuestError::io("write to the engine")(error)
}

/// Writes the sealed blocks of each nonempty partition; returns the number of frames.
fn send(segment: &Path, guest: &Guest, out: &mut impl Write) -> Result<u64, GuestError> {
    let unreadable = |error: &dyn std::fmt::Display| TaskError::retryable(error.to_string());
    let opened = File::open(segment);
    let file = opened.map_err(|error| {
        TaskError::local(
            format!("cannot open {}: {error}", segment.display()),
            &error,
        )
    })?;
    let index = SegmentIndex::read(&file, segment).map_err(|error| unreadable(&error))?;
    let mut frames = 0;
    for partition in 0..index.partitions() {
        let extent = index
            .extent(partition, 0)
            .map_err(|error| unreadable(&error))?;
        if extent.records() > 0 {
            frames += send_partition(&file, &extent, guest, out)?;
        }
    }
    Ok(frames)
}

fn send_partition(
    file: &File,
    extent: &PartitionExtent,
    guest: &Guest,
    out: &mut impl Write,
) -> Result<u64, GuestError> {
    let described = extent.encode();
    let mut frame = GuestFrame {
        partition: extent.partition(),
        map: guest.arguments.task,
        number: 0,
        length: 0,
    };
    let too_long = || {
        TaskError::fatal(
            "a partition of this map has too many blocks for one frame; pass a larger --reduces",
        )
    };
    frame.length = u32::try_from(described.len())
        .ok()
        .filter(|length| *length <= GUEST_FRAME_BYTES_MAX)
        .ok_or_else(too_long)?;
    frame.write(&described, out).map_err(write_error)?;
    let range = extent.range();
    let mut chunk = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let length = (range.end - at).min(u64::from(guest.arguments.chunk));
        chunk.resize(length as usize, 0);
        let read = file.read_exact_at(&mut chunk, at);
        read.map_err(|error| {
            TaskError::local(
                format!("cannot read the output of this map: {error}"),
                &error,
            )
        })?;
        frame.number = frame.number.checked_add(1).ok_or_else(too_long)?;
        frame.length = length as u32;
        frame.write(&chunk, out).map_err(write_error)?;
        at += length;
    }
    Ok(u64::from(frame.number) + 1)
}
