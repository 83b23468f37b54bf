//! Counts the words of text in stores: `stored-words s3://bucket/books/ --output DIR`.
//!
//! Owns nothing but the job, which is that of `wordcount`: where its input is, the job does not know. Which
//! stores it reads are the features with which it was built.

use std::process::ExitCode;

use napreduce::{Emit, Job, Program, words};

fn stored_words(_: &()) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| words(line).for_each(|word| out.emit(word, 1)))
        .combine(|count, more| *count += more)
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

fn main() -> ExitCode {
    Program::new()
        .about("Counts the words of text in stores, or in files")
        .examples(
            "stored-words s3://bucket/books/ --output counts
             stored-words 's3://bucket/logs/*.gz' more.txt --output counts",
        )
        .main(stored_words)
}
