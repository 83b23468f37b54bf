//! Batches of events for the engine: events that arrive together form one journal entry.

use napreduce_engine::Event;

use super::Coordinator;
use super::entry::Extra;

impl Coordinator {
    /// Applies a single event now.
    pub fn enter(&mut self, event: Event) {
        self.enter_with(Some(event), Vec::new());
    }

    /// Applies a single extra now.
    pub fn keep(&mut self, extra: Extra) {
        self.enter_with(None, vec![extra]);
    }

    pub fn enter_with(&mut self, event: Option<Event>, extra: Vec<Extra>) {
        self.decide();
        self.add_to_batch(event, extra);
        self.decide();
    }

    /// Adds a worker's report to the batch.
    pub fn add_to_batch(&mut self, events: impl IntoIterator<Item = Event>, extra: Vec<Extra>) {
        let clock = self.clock;
        let state = &mut self.state;
        let batch = self.entries.batch(|| state.begin_entry(clock.now()));
        batch.events.extend(events);
        batch.extra.extend(extra.iter().cloned());
        for extra in extra {
            self.state.take_in(extra);
        }
    }

    /// Has the engine process the batch, which becomes one journal entry with the next write.
    pub fn decide(&mut self) {
        if let Some(entry) = self.entries.take_batch() {
            self.state.handle_batch(entry);
        }
    }
}
