//! The number of each sequence of three words of a line, by document: `sequence-count INPUT... --output DIR`. The key is
//! `word|word|word|document`.

use napreduce::{Emit, Job, Program, words};
use napreduce_lab::records::by_document;

pub fn sequence_count() -> Job<(String, u64)> {
    Job::text()
        .mapper(by_document(
            |document, line, out: &mut Emit<String, u64>| {
                let mut words = words(line);
                let (Some(mut first), Some(mut second)) = (words.next(), words.next()) else {
                    return;
                };
                let mut sequence = String::new();
                for third in words {
                    sequence.clear();
                    sequence.extend([first, "|", second, "|", third, "|", document]);
                    out.emit(&sequence, 1);
                    (first, second) = (second, third);
                }
            },
        ))
        .sum()
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Counts each three words that follow one another in a line, by document")
        .examples("sequence-count books --output sequences")
        .main(sequence_count)
}
