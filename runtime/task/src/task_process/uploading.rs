//! The commit of one attempt to a store: sends its files as uploads before it requests a commit grant, with
//! boundaries in between. The commit of the job completes the granted uploads and drops all others.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use napreduce_engine::FaultPlace;
use napreduce_protocol::{
    Counter, NamedPart, ObjectStores, PartOutput, PendingUpload, StoreError, StoredUpload,
    TaskError, UPLOAD_PART_BYTES_MIN, UPLOAD_PARTS_MAX, UploadWriter,
};

use super::promotion::PartPaths;
use crate::context::TaskContext;
use crate::progress;

/// Bytes per part, if memory permits: two are sent while a third is read.
const PART_BYTES: u64 = 8 << 20;
/// One part uses at most 1/32 of the task's memory.
const MEMORY_SHARE: u64 = 32;

/// Uploads a part and its named outputs to a store.
pub(super) fn upload(
    part: PartOutput,
    paths: PartPaths<'_>,
    context: &TaskContext,
) -> Result<PartOutput, TaskError> {
    let stores = crate::object_stores(paths.target).map_err(|reason| {
        TaskError::fatal(format!("cannot write output: {reason}")).at(FaultPlace::SharedStorage)
    })?;
    // The store waits for the rest of a request.
    let _in_flight = context.begin_in_flight();
    let sending = Sending { stores, context };
    let sent = sending.send_all(part, paths);
    let counters = context.counters();
    let figures = stores.take_written();
    counters.add(Counter::StorageWriteRequests, figures.requests);
    counters.add(Counter::StorageWriteBytes, figures.bytes);
    counters.add(Counter::StorageWriteRetries, figures.retries);
    sent
}

struct Sending<'a> {
    stores: &'static dyn ObjectStores,
    context: &'a TaskContext,
}

impl Sending<'_> {
    fn send_all(
        &self,
        mut part: PartOutput,
        paths: PartPaths<'_>,
    ) -> Result<PartOutput, TaskError> {
        let PartPaths { written, target } = paths;
        for named in &mut part.named {
            let from = NamedPart::path_next_to(written, &named.name);
            let to = NamedPart::in_output(target, &named.name);
            named.upload = Some(self.send_file(&from, &to, named.bytes)?);
        }
        part.upload = Some(self.send_file(written, target, part.bytes)?);
        Ok(part)
    }

    fn send_file(&self, from: &Path, to: &Path, bytes: u64) -> Result<PendingUpload, TaskError> {
        let object = to.to_string_lossy();
        let mut upload = self
            .stores
            .begin_upload(&object)
            .map_err(|error| unwritten(&error))?;
        let id = upload.id().to_owned();
        let sent = self.send_parts(&mut *upload, from, bytes);
        let sent = sent.and_then(|()| upload.finish().map_err(|error| unwritten(&error)));
        sent.inspect_err(|_| {
            // Otherwise it is aborted at the end of the job.
            let _ = self.stores.abort_upload(&StoredUpload {
                object: object.into_owned(),
                id,
            });
        })
    }

    fn send_parts(
        &self,
        upload: &mut dyn UploadWriter,
        from: &Path,
        bytes: u64,
    ) -> Result<(), TaskError> {
        let unread = |error: &io::Error| {
            TaskError::local(format!("cannot read {}: {error}", from.display()), error)
        };
        let mut file = File::open(from).map_err(|error| unread(&error))?;
        let part_bytes = part_bytes(bytes, self.context.memory());
        let mut left = bytes;
        while left > 0 {
            if self.context.is_asked() {
                // Not worth a checkpoint: the upload finishes soon.
                self.context.boundary_within(&mut ())?;
            }
            let mut part = Vec::new();
            let wanted = left.min(part_bytes);
            (&mut file)
                .take(wanted)
                .read_to_end(&mut part)
                .map_err(|error| unread(&error))?;
            if part.len() as u64 != wanted {
                return Err(unread(&io::ErrorKind::UnexpectedEof.into()));
            }
            upload.send(part).map_err(|error| unwritten(&error))?;
            progress();
            left -= wanted;
        }
        Ok(())
    }
}

/// Returns the part size of an upload: bounded by the task's memory, at least the store's minimum, and large
/// enough for the maximum number of parts.
fn part_bytes(bytes: u64, memory: u64) -> u64 {
    let usual = (memory / MEMORY_SHARE).clamp(UPLOAD_PART_BYTES_MIN, PART_BYTES);
    usual.max(bytes.div_ceil(UPLOAD_PARTS_MAX))
}

fn unwritten(error: &StoreError) -> TaskError {
    let message = format!("cannot write output: {error}");
    let failed = if error.is_passing {
        TaskError::retryable(message)
    } else {
        TaskError::fatal(message)
    };
    failed.at(FaultPlace::SharedStorage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upload_parts_fit_memory_and_part_limit() {
        assert_eq!(part_bytes(1, 256 << 20), 8 << 20);
        assert_eq!(part_bytes(1, 1 << 40), 8 << 20);
        assert_eq!(
            part_bytes(1, 16 << 20),
            5 << 20,
            "stores require larger parts"
        );
        let most = 5 << 40;
        let bytes = part_bytes(most, 256 << 20);
        assert!(bytes > 8 << 20 && most.div_ceil(bytes) <= UPLOAD_PARTS_MAX);
    }
}
