//! The job of this program. Its functions run in task processes, which execute the same program again.

use napreduce::{Job, words};

/// Counts the words of text.
pub fn wordcount() -> Job<(String, u64)> {
    Job::text().flat_map(words).count()
}
