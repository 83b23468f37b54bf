//! An event: what has changed, as an object of REST.
//!
//! Owns its form. Does not own what is worth one (`changes`, `details`).

use serde::Serialize;

use super::topic::{Topic, Topics};

/// Something that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub name: &'static str,
    /// Who hears of it; with none of them everybody does.
    pub topics: Vec<Topic>,
    /// One line of JSON.
    pub data: String,
}

impl Change {
    /// An object is another one than before.
    ///
    /// # Errors
    /// When JSON cannot say it.
    pub fn of(
        name: &'static str,
        topics: Vec<Topic>,
        object: &impl Serialize,
    ) -> Result<Change, serde_json::Error> {
        Ok(Change { name, topics, data: serde_json::to_string(object)? })
    }

    /// What was heard is not all: everything is to be asked for anew.
    pub fn reset() -> Change {
        Change { name: "reset", topics: Vec::new(), data: "{}".to_owned() }
    }
}

/// A change, numbered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageEvent {
    pub sequence: u64,
    pub change: Change,
}

impl PageEvent {
    /// Whether it is about one of these.
    pub fn concerns(&self, topics: &Topics) -> bool {
        let about = &self.change.topics;
        about.is_empty() || about.iter().any(|topic| topics.contains(topic))
    }
}
