//! Entries on their way to the journal, and the answers that wait for them.

use napreduce_engine::Time;

use super::entry::Entry;
#[cfg(feature = "simulated")]
use crate::world::{Fact, note};

/// An answer that waits for the journal.
type Answer = Box<dyn FnOnce() + Send>;

/// The undecided batch, the unwritten entries, and the answers to release when these are written.
pub(super) struct Entries {
    /// Whether entries are journaled, as in a cluster.
    journaled: bool,
    batch: Option<Entry>,
    unwritten: Vec<Vec<u8>>,
    answers: Vec<Answer>,
}

impl Entries {
    pub fn new(journaled: bool) -> Entries {
        Entries {
            journaled,
            batch: None,
            unwritten: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Returns the undecided batch; `begin` returns the time of a new one.
    pub fn batch(&mut self, begin: impl FnOnce() -> Time) -> &mut Entry {
        self.batch.get_or_insert_with(|| Entry {
            at: begin(),
            events: Vec::new(),
            extra: Vec::new(),
        })
    }

    /// Takes the batch, which becomes one journal entry with the next write.
    pub fn take_batch(&mut self) -> Option<Entry> {
        let entry = self.batch.take()?;
        if self.journaled {
            #[cfg(feature = "simulated")]
            note(&Fact::EntryDecided);
            let text = serde_json::to_vec(&entry);
            self.unwritten.push(
                text.expect(
                    "only maps with other keys than text cannot be JSON, and there is none",
                ),
            );
        }
        Some(entry)
    }

    /// Releases an answer after the next write.
    pub fn answer_later(&mut self, answer: impl FnOnce() + Send + 'static) {
        self.answers.push(Box::new(answer));
    }

    /// Writes the entries; they are kept if that fails.
    pub fn write<E>(&mut self, write: impl FnOnce(&[Vec<u8>]) -> Result<(), E>) -> Result<(), E> {
        if !self.unwritten.is_empty() {
            write(&self.unwritten)?;
            self.unwritten.clear();
            #[cfg(feature = "simulated")]
            note(&Fact::EntriesWritten);
        }
        Ok(())
    }

    /// Releases the answers; the entries that they follow from are written.
    pub fn release_answers(&mut self) {
        for answer in std::mem::take(&mut self.answers) {
            #[cfg(feature = "simulated")]
            note(&Fact::EffectReleased { what: "an answer" });
            answer();
        }
    }
}
