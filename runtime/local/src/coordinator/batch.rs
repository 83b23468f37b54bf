//! What happens, on its way to the engine: what has arrived together is one batch, and one entry of
//! the journal.
//!
//! Owns what waits for whom. Does not own when the journal is written (`daemon`) nor what follows (`state`).

use napreduce_engine::Event;

use super::Coordinator;
use super::entry::{Entry, Extra};

impl Coordinator {
    /// Takes in an event that happens now, by itself.
    pub fn enter(&mut self, event: Event) {
        self.enter_with(Some(event), Vec::new());
    }

    /// Takes in what happens now and the engine knows nothing of.
    pub fn keep(&mut self, extra: Extra) {
        self.enter_with(None, vec![extra]);
    }

    pub fn enter_with(&mut self, event: Option<Event>, extra: Vec<Extra>) {
        self.decide();
        self.add_to_batch(event, extra);
        self.decide();
    }

    /// Takes in what a worker says. The engine hears of it together with what else has arrived.
    pub fn add_to_batch(&mut self, events: impl IntoIterator<Item = Event>, extra: Vec<Extra>) {
        let batch = self.batch.get_or_insert_with(|| {
            let at = self.clock.now().max(self.state.last);
            self.state.last = at;
            Entry { at, events: Vec::new(), extra: Vec::new() }
        });
        batch.events.extend(events);
        batch.extra.extend(extra.iter().cloned());
        for extra in extra {
            self.state.take_in(extra);
        }
    }

    /// Has the engine decide about the batch, which is one entry of the journal, with
    /// the next write.
    pub fn decide(&mut self) {
        let Some(entry) = self.batch.take() else { return };
        if self.cluster.is_some() {
            let text = serde_json::to_vec(&entry);
            self.unwritten
                .push(text.expect("only maps with other keys than text cannot be JSON, and there is none"));
        }
        self.state.handle_batch(entry);
    }
}
