//! The documents that contain each word: `inverted-index INPUT... --output DIR`.

use napreduce::{Emit, Job, Program, words};
use napreduce_lab::records::by_document;

pub fn inverted_index() -> Job {
    Job::text()
        .mapper(by_document(
            |document, line, out: &mut Emit<(String, String), ()>| {
                words(line).for_each(|word| out.emit((word, document), ()));
            },
        ))
        .combine(|(), ()| ())
        .group_by::<String>()
        .reduce(|word, documents, out| {
            let mut last = String::new();
            while let Some(((_, document), ())) = documents.next_entry() {
                if document != last {
                    out.emit(word, document);
                    document.clone_into(&mut last);
                }
            }
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Lists the documents that each word stands in")
        .examples("inverted-index books --output index")
        .main(inverted_index)
}
