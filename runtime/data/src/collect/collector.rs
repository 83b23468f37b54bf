//! The collector of a map task.
//!
//! Owns the two modes, plain and combining, and the order combine, sort, spill, seal.

use std::collections::HashMap;

use crate::collect::CollectError;
use crate::combine::Combiner;
use crate::partition::Partitioner;
use crate::record::RecordEncoding;
use crate::segment::{LABEL_MAX, Seal, SealedSegment, SegmentShape, SegmentWriter};
use crate::settings::CollectorSettings;

/// What a collector did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CollectStatistics {
    /// Records emitted.
    pub records_in: u64,
    /// Bytes of the keys emitted, and in plain mode of the values.
    pub bytes_in: u64,
    /// Records in the sealed segment.
    pub records_out: u64,
    /// Records that entered the combiner before the sort.
    pub combine_records_in: u64,
    /// Records that left it.
    pub combine_records_out: u64,
    /// Whether combining before the sort was given up because it did not shrink the data.
    pub combine_bypassed: bool,
    /// Sorted runs written before the end.
    pub spills: u64,
    /// Records written to these runs and by intermediate merges.
    pub spilled_records: u64,
    /// The most memory granted at once, in bytes.
    pub memory_peak: usize,
}

/// Takes the records that a map task emits and seals them, sorted by partition and key, into one segment.
///
/// Its type does not name the combiner, so that a closure over it can be written before the combiner is known.
pub struct Collector<V> {
    settings: CollectorSettings,
    partitioner: Partitioner,
    combine: Option<Box<dyn Combine<V>>>,
    records: Vec<(u32, Vec<u8>, Vec<u8>)>,
    failure: Option<CollectError>,
    statistics: CollectStatistics,
}

trait Combine<V> {
    fn absorb(&mut self, key: &[u8], value: V);
    fn flush(&mut self, each: &mut dyn FnMut(&[u8], &[u8]));
}

struct Table<C: Combiner> {
    combiner: C,
    values: HashMap<Vec<u8>, C::Value>,
}

impl<C: Combiner> Combine<C::Value> for Table<C> {
    fn absorb(&mut self, key: &[u8], value: C::Value) {
        match self.values.get_mut(key) {
            Some(into) => self.combiner.fold(into, value),
            None => {
                self.values.insert(key.to_vec(), value);
            }
        }
    }

    fn flush(&mut self, each: &mut dyn FnMut(&[u8], &[u8])) {
        let mut encoded = Vec::new();
        for (key, value) in self.values.drain() {
            encoded.clear();
            self.combiner.encode(&value, &mut encoded);
            each(&key, &encoded);
        }
    }
}

impl<V> Collector<V> {
    /// A collector that keeps every record emitted.
    ///
    /// # Errors
    /// Settings that cannot be used.
    pub fn plain(settings: CollectorSettings) -> Result<Self, CollectError> {
        Collector::new(settings, None)
    }

    /// A collector that folds the values of equal keys.
    ///
    /// # Errors
    /// Settings that cannot be used.
    pub fn combining<C: Combiner<Value = V> + 'static>(
        settings: CollectorSettings,
        combiner: C,
    ) -> Result<Self, CollectError>
    where
        V: 'static,
    {
        Collector::new(settings, Some(Box::new(Table { combiner, values: HashMap::new() })))
    }

    fn new(
        mut settings: CollectorSettings,
        combine: Option<Box<dyn Combine<V>>>,
    ) -> Result<Self, CollectError> {
        if settings.label.len() > LABEL_MAX {
            return Err(CollectError::Settings(format!(
                "a label of {} bytes is too long",
                settings.label.len()
            )));
        }
        if settings.encoding == (RecordEncoding::Fixed { key: 0, value: 0 }) {
            return Err(CollectError::Settings("records of no bytes: use RecordEncoding::Variable".into()));
        }
        let partitioning =
            std::mem::replace(&mut settings.partitioning, crate::settings::Partitioning::Single);
        let partitioner = Partitioner::new(partitioning)?;
        Ok(Collector {
            settings,
            partitioner,
            combine,
            records: Vec::new(),
            failure: None,
            statistics: CollectStatistics::default(),
        })
    }

    /// Adds a record, in plain mode.
    #[inline]
    pub fn emit_bytes(&mut self, key: &[u8], value: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        if self.combines() {
            self.failure =
                Some(CollectError::WrongMode { called: "emit_bytes", made: "Collector::combining" });
            return;
        }
        self.statistics.records_in += 1;
        self.statistics.bytes_in += (key.len() + value.len()) as u64;
        self.add(key, value);
    }

    /// Adds a value to fold, in combining mode.
    #[inline]
    pub fn emit_value(&mut self, key: &[u8], value: V) {
        if self.failure.is_some() {
            return;
        }
        let Some(combine) = &mut self.combine else {
            self.failure = Some(CollectError::WrongMode { called: "emit_value", made: "Collector::plain" });
            return;
        };
        combine.absorb(key, value);
        self.statistics.records_in += 1;
        self.statistics.combine_records_in += 1;
        self.statistics.bytes_in += key.len() as u64;
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        if let RecordEncoding::Fixed { key: expected_key, value: expected_value } = self.settings.encoding
            && (key.len(), value.len()) != (expected_key as usize, expected_value as usize)
        {
            self.failure = Some(CollectError::NotFixed {
                key: key.len(),
                value: value.len(),
                expected_key,
                expected_value,
            });
            return;
        }
        let (chosen, partitions) = (self.partitioner.partition(key), self.partitioner.partitions());
        if chosen >= partitions {
            let key = key.escape_ascii().to_string();
            self.failure = Some(CollectError::PartitionOutOfRange { chosen, partitions, key });
            return;
        }
        self.records.push((chosen, key.to_vec(), value.to_vec()));
    }

    /// Whether it folds values: which of the two emit functions may be called.
    #[inline]
    pub fn combines(&self) -> bool {
        self.combine.is_some()
    }

    /// The first error since the last call, after which nothing more was collected.
    ///
    /// # Errors
    /// That error.
    pub fn check(&mut self) -> Result<(), CollectError> {
        match self.failure.take() {
            None => Ok(()),
            Some(failure) => Err(failure),
        }
    }

    /// Sorts, merges and seals what was emitted.
    ///
    /// # Errors
    /// The first error of any emit, or of writing.
    pub fn finish(mut self) -> Result<(SealedSegment, CollectStatistics), CollectError> {
        if let Some(mut combine) = self.combine.take() {
            combine.flush(&mut |key, value| {
                self.statistics.combine_records_out += 1;
                self.add(key, value);
            });
        }
        self.check()?;
        self.records.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let shape = SegmentShape {
            encoding: self.settings.encoding,
            compression: self.settings.compression,
            partitions: self.partitioner.partitions(),
            label: self.settings.label.clone(),
        };
        let mut writer = SegmentWriter::create(&self.settings.output, shape, 1 << 20)?;
        let mut partition = 0;
        for (of, key, value) in &self.records {
            while partition < *of {
                writer.next_partition()?;
                partition += 1;
            }
            writer.append(key, value)?;
        }
        let sealed = writer.finish(Seal { durable: self.settings.durable })?;
        self.statistics.records_out = sealed.records;
        Ok((sealed, self.statistics))
    }
}
