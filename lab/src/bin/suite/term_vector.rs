//! The words that occur ten times or more in each document: `term-vector INPUT... --output DIR`. The most frequent come
//! first, then by word.

use std::cmp::Reverse;

use napreduce::builder::Sum;
use napreduce::{Emit, Job, Program, words};
use napreduce_lab::records::by_document;

/// Rarer words are left out.
const COUNT_MIN: u64 = 10;

pub fn term_vector() -> Job {
    Job::text()
        .mapper(by_document(
            |document, line, out: &mut Emit<(String, String), u64>| {
                words(line).for_each(|word| out.emit((document, word), 1));
            },
        ))
        .combine(Sum::add)
        .group_by::<String>()
        .reduce(|document, words, out| {
            let mut frequent: Vec<(Reverse<u64>, String)> = Vec::new();
            while let Some(((_, word), count)) = words.next_entry() {
                match frequent.last_mut() {
                    Some((Reverse(total), last)) if last == word => *total += count,
                    _ => {
                        // The word before has been counted to its end.
                        frequent.pop_if(|(Reverse(total), _)| *total < COUNT_MIN);
                        frequent.push((Reverse(count), word.to_owned()));
                    }
                }
            }
            frequent.pop_if(|(Reverse(total), _)| *total < COUNT_MIN);
            frequent.sort();
            for (Reverse(count), word) in frequent {
                out.emit(document, format!("{word}:{count}"));
            }
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Lists the words that each document has ten times or more, the most frequent first")
        .examples("term-vector books --output vectors")
        .main(term_vector)
}
