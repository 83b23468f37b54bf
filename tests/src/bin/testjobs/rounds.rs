//! A chain whose driver reads the output of a round and passes it to the next one as a side file.

use napreduce::program::{Error, side_file};
use napreduce::records::Records;
use napreduce::{Driver, Emit, Job, TaskError};

use crate::Choice;

/// Counts the words that are not in any side file called `known`.
pub fn unknown_words(_: &Choice) -> Job<(String, u64)> {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| -> Result<(), TaskError> {
            let known = side_file("known").and_then(std::fs::read_to_string);
            let known = known.map_err(|error| TaskError::fatal(error.to_string()))?;
            let words = line.split(' ').filter(|word| !known.lines().any(|known| known == *word));
            words.for_each(|word| out.emit(word, 1));
            Ok(())
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
        let written = std::fs::write(&list, &known);
        written.map_err(|error| Error::Usage(format!("cannot write {list}: {error}")))?;
        driver.set_side_file("known", &list)?;
        let counts = driver.intermediate(&format!("round-{round}"));
        driver.job("unknown-words").parameters(choice).output(&counts).run()?;
        let found = driver.read_records::<String, u64>(&counts)?;
        if round == choice.number {
            return driver.job("unknown-words-as-text").parameters(choice).inputs([&counts]).run().map(drop);
        }
        if let Some((word, _)) = found.into_iter().max_by_key(|(_, count)| *count) {
            known.push_str(&word);
            known.push('\n');
        }
    }
    Ok(())
}
