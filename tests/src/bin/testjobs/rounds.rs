//! A chain whose driver reads the output of a round and passes it to the next one as a side file.

use std::fs;

use napreduce::program::{Error, SideFile};
use napreduce::records::Records;
use napreduce::{Driver, Emit, Job};

use crate::Choice;

/// Counts the words that are not in any side file called `known`.
pub fn unknown_words(_: &Choice) -> Job<(String, u64)> {
    let known = SideFile::new("known", |path| fs::read_to_string(path));
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, u64>| {
            let words = line
                .split(' ')
                .filter(|word| !known.get().lines().any(|known| known == *word));
            words.for_each(|word| out.emit(word, 1));
        })
        .output(Records::<String, u64>::default())
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// The same as text.
pub fn unknown_words_as_text(_: &Choice) -> Job {
    Job::records::<String, u64>()
        .map(|(word, count), out: &mut Emit<String, u64>| out.emit(word, count))
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// Removes the most frequent word `number` times, and writes the remaining words. The lists of removed words
/// are in the working directory.
pub fn drive(driver: &mut Driver<'_>, choice: &Choice) -> Result<(), Error> {
    let mut known = String::from("\n");
    for round in 0..=choice.number {
        let list = format!("known-{round}");
        let written = fs::write(&list, &known);
        written.map_err(|error| Error::Usage(format!("cannot write {list}: {error}")))?;
        driver.set_side_file("known", &list)?;
        let counts = driver.intermediate(&format!("round-{round}"));
        driver
            .job("unknown-words")
            .parameters(choice)
            .output(&counts)
            .run()?;
        let found = driver.read_records::<String, u64>(&counts)?;
        if round == choice.number {
            return driver
                .job("unknown-words-as-text")
                .parameters(choice)
                .inputs([&counts])
                .run()
                .map(drop);
        }
        if let Some((word, _)) = found.into_iter().max_by_key(|(_, count)| *count) {
            known.push_str(&word);
            known.push('\n');
        }
    }
    Ok(())
}
