//! The cuts of a total order, from a sample of the input's keys. As in Hadoop's TeraSort, the sample has
//! 100,000 keys from 10 splits. A key equal to a cut belongs to the partition after it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use napreduce_protocol::{CounterValues, TaskError};
use napreduce_task::{refusal, set_user_counters, user_counters};

use crate::emit::Emit;
use crate::input::{InputError, InputFormat, InputPlace, InputSplit, RecordReader, Split};
use crate::task::bad_records;
use crate::task::map::TypedMap;
use crate::user_code::{Mapper, TaskInfo};

const SAMPLED_KEYS: usize = 100_000;
const SAMPLED_SPLITS: usize = 10;

/// The reason to stop reading before the end of a split.
enum Stop {
    Enough,
    Input(InputError),
    Failed(TaskError),
}

impl From<InputError> for Stop {
    fn from(error: InputError) -> Stop {
        Stop::Input(error)
    }
}

/// Samples the beginnings of up to ten splits spread evenly over the input, and cuts the sorted keys.
/// `sample` returns the keys of a number of records from part of a split.
///
/// With `grouping`, only the prefix that defines a group is cut, so that no group is divided.
pub(crate) fn cuts(
    sample: impl Fn(u32, &Split, usize) -> Result<Vec<Vec<u8>>, TaskError>,
    grouping: Option<fn(&[u8]) -> usize>,
    splits: &[InputSplit],
    partitions: u32,
) -> Result<Vec<Vec<u8>>, TaskError> {
    if partitions < 2 {
        return Ok(Vec::new());
    }
    let parts = (0..)
        .zip(splits)
        .flat_map(|(index, split)| split.parts.iter().map(move |part| (index, part)));
    let parts: Vec<(u32, &Split)> = parts.collect();
    let sampled = parts.len().min(SAMPLED_SPLITS);
    let wanted = SAMPLED_KEYS.div_ceil(sampled.max(1));
    let mut keys = Vec::new();
    let counted = user_counters();
    for number in 0..sampled {
        let (index, part) = parts[number * parts.len() / sampled];
        // As in a separate task, with its own limit of bad rows.
        set_user_counters(&CounterValues::default());
        keys.extend(sample(index, part, wanted)?);
    }
    set_user_counters(&counted);
    if let Some(prefix_length) = grouping {
        for key in &mut keys {
            let length = prefix_length(key);
            key.truncate(length);
        }
    }
    keys.sort_unstable();
    Ok(choose(&keys, partitions))
}

/// Emits the first records of a split into a sample.
pub(super) fn sample_split<M: Mapper>(
    TypedMap {
        format,
        mapper,
        bad_input,
    }: &TypedMap<M>,
    split: &Split,
    wanted: usize,
    memory: u64,
    mut out: Emit<M::Key, M::Value>,
) -> Result<Emit<M::Key, M::Value>, TaskError> {
    let mut mapper = mapper.clone();
    let task = napreduce_engine::TaskId {
        job: napreduce_engine::JobId(0),
        kind: napreduce_engine::TaskKind::Map,
        index: 0,
    };
    let attempt = napreduce_engine::AttemptId { task, number: 0 };
    mapper.setup(&TaskInfo::of_sample(attempt, &split.path))?;
    let mut reader = format.open(split, memory as usize)?;
    let place = InputPlace::new(split, reader.byte_position(), memory as usize);
    out.enter(place.clone());
    let sampled = catch_unwind(AssertUnwindSafe(|| {
        loop {
            let batch = reader.read_batch(&mut |record: <M::Input as InputFormat>::Record<'_>| {
                let mapped = mapper.map(record, &mut out);
                mapped
                    .or_else(|error| bad_records::pass(error, *bad_input, Some(&place)))
                    .map_err(Stop::Failed)?;
                if out.sampled() >= wanted {
                    Err(Stop::Enough)
                } else {
                    Ok(())
                }
            });
            match batch {
                Ok(true) => {}
                Ok(false) | Err(Stop::Enough) => return Ok(()),
                Err(Stop::Input(error)) => {
                    return Err(error.in_line(|offset| place.line_of(offset)).into());
                }
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
    }));
    match sampled {
        Ok(result) => result?,
        Err(panic) => {
            let record = place
                .describe()
                .unwrap_or_else(|| format!("{} {}", split.path.display(), reader.place()));
            let refused =
                refusal(&*panic).map(|error| format!("{}, reading {record}", error.message));
            return Err(TaskError::task(refused.unwrap_or_else(|| {
                format!("the map function panicked while the input was sampled, reading {record}")
            })));
        }
    }
    Ok(out)
}

/// Returns exactly `partitions - 1` keys at equal distances, ascending. A repeated cut leaves the partition
/// between empty; so does an empty sample, cut at the empty key.
fn choose(sorted: &[Vec<u8>], partitions: u32) -> Vec<Vec<u8>> {
    let partitions = partitions as usize;
    (1..partitions)
        .map(|number| {
            sorted
                .get(number * sorted.len() / partitions)
                .cloned()
                .unwrap_or_default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(numbers: &[u8]) -> Vec<Vec<u8>> {
        numbers.iter().map(|number| vec![*number]).collect()
    }

    #[test]
    fn cuts_divide_sample_equally() {
        let sample = keys(&(0..100).collect::<Vec<_>>());
        assert_eq!(choose(&sample, 4), keys(&[25, 50, 75]));
        assert_eq!(choose(&sample, 1), keys(&[]));
    }

    #[test]
    fn any_sample_gives_one_cut_per_boundary() {
        assert_eq!(choose(&keys(&[7, 7, 7, 7]), 3), keys(&[7, 7]));
        assert_eq!(choose(&[], 3), vec![Vec::<u8>::new(), Vec::new()]);
    }
}
