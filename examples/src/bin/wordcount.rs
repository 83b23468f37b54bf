//! Counts the words of text files: `wordcount INPUT... --output DIR`. Words are separated by ASCII white
//! space.

use std::process::ExitCode;

use napreduce::{Emit, Job, Program, words};

fn wordcount(_: &()) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            for word in words(line) {
                out.emit(word, 1);
            }
        })
        .combine(|count, more| *count += more)
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
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
