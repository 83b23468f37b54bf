//! The job of this program. Its closures run in task processes, which execute the same program again.

use napreduce::{Emit, Job, words};

/// Counts the words of text.
pub fn wordcount() -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            for word in words(line) {
                out.emit(word, 1);
            }
        })
        .combine(|count, more| *count += more)
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}
