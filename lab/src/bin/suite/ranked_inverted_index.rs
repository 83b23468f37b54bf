//! The documents of each sequence of three words, from the output of `sequence-count`: `ranked-inverted-index INPUT...
//! --output DIR`. The largest count comes first, then by document.

use std::cmp::Reverse;

use napreduce::{Emit, Job, Program};

pub fn ranked_inverted_index() -> Job {
    Job::text()
        .map(
            |line: &str, out: &mut Emit<(String, Reverse<u64>, String), ()>| {
                let wrong = || {
                    format!(
                        "expected WORD|WORD|WORD|DOCUMENT, a tab and a count, but found {line:?}"
                    )
                };
                let (key, count) = line.rsplit_once('\t').ok_or_else(wrong)?;
                let (sequence, document) = key.rsplit_once('|').ok_or_else(wrong)?;
                let count = count.parse().map_err(|_| wrong())?;
                out.emit((sequence, Reverse(count), document), ());
                Ok::<(), String>(())
            },
        )
        .group_by::<String>()
        .reduce(|sequence, documents, out| {
            while let Some(((_, Reverse(count), document), ())) = documents.next_entry() {
                out.emit(sequence, format!("{count}|{document}"));
            }
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Lists the documents of each sequence of words, by falling count")
        .examples("ranked-inverted-index sequences --output ranked")
        .main(ranked_inverted_index)
}
