//! A bounded cache of recently used segment indexes: many reduces request the same footer, and each read
//! verifies all of it. Files are not kept open, since that would keep the disk space of removed segments.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};

use napreduce_data::{SegmentError, SegmentIndex};
use napreduce_local::world::disk::FileStat;
use napreduce_protocol::lock;

use crate::blobs::Stamp;

const ENTRIES_MAX: usize = 256;
const BYTES_MAX: usize = 64 << 20;

/// Indexes by file, most recently used first.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    entries: Mutex<VecDeque<(Stamp, Arc<SegmentIndex>)>>,
}

impl Indexes {
    /// Returns the index of an open file.
    pub(super) fn of(&self, file: &File, path: &Path) -> Result<Arc<SegmentIndex>, SegmentError> {
        let metadata = file.metadata().map_err(|source| SegmentError::Open {
            path: path.to_owned(),
            source,
        })?;
        let stamp = Stamp::from(FileStat::from(&metadata));
        if let Some(index) = self.find(stamp) {
            return Ok(index);
        }
        let index = Arc::new(SegmentIndex::read(file, path)?);
        self.keep(stamp, &index);
        Ok(index)
    }

    fn find(&self, stamp: Stamp) -> Option<Arc<SegmentIndex>> {
        let mut entries = lock(&self.entries);
        let at = entries.iter().position(|(kept, _)| *kept == stamp)?;
        let entry = entries.remove(at)?;
        let index = Arc::clone(&entry.1);
        entries.push_front(entry);
        Some(index)
    }

    fn keep(&self, stamp: Stamp, index: &Arc<SegmentIndex>) {
        let mut entries = lock(&self.entries);
        entries.push_front((stamp, Arc::clone(index)));
        let mut bytes = 0;
        let fits = |(_, index): &&(Stamp, Arc<SegmentIndex>)| {
            bytes += index.heap_bytes();
            bytes <= BYTES_MAX
        };
        let count = entries.iter().take(ENTRIES_MAX).take_while(fits).count();
        entries.truncate(count);
    }
}
