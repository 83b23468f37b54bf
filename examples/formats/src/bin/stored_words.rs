//! Counts the words of text in stores: `stored-words s3://bucket/books/ --output DIR`.
//!
//! The job is that of `wordcount`. The features of the build select the stores.

use napreduce::{Job, Program, words};

fn stored_words() -> Job<(String, u64)> {
    Job::text().flat_map(words).count()
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Counts the words of text in stores, or in files")
        .examples(
            "stored-words s3://bucket/books/ --output counts
             stored-words 's3://bucket/logs/*.gz' more.txt --output counts",
        )
        .main(stored_words)
}
