//! Counts the words of text files: `wordcount INPUT... --output DIR`. Words are separated by ASCII white
//! space.

use std::process::ExitCode;

use napreduce::{Job, Program, words};

fn wordcount() -> Job<(String, u64)> {
    Job::text().flat_map(words).count()
}

fn main() -> ExitCode {
    Program::new()
        .about("Counts the words of text files")
        .examples(
            "wordcount README.md --output out
             wordcount 'logs/*.gz' --output counts --reduces 4 --overwrite",
        )
        .main(wordcount)
}
