//! A chain of two jobs with typed records between them.

use std::cmp::Reverse;

use napreduce::records::Records;
use napreduce::{Emit, Job, words};

use crate::Choice;

/// First job of the chain: counts as typed records.
pub fn count_to_records(_: &Choice) -> Job<(String, u64)> {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            words(line).for_each(|word| out.emit(word, 1))
        })
        .combine(|count, more| *count += more)
        .output(Records::<String, u64>::default())
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// Second job of the chain: by falling count, then word.
pub fn by_count(_: &Choice) -> Job {
    Job::records::<String, u64>()
        .map(
            |(word, count), out: &mut Emit<(Reverse<u64>, String), ()>| {
                out.emit((Reverse(count), word), ())
            },
        )
        .total_order()
        .reduce(|(count, word), _, out| out.emit(word, count.0))
}
