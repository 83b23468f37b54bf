//! Events: changes as objects of REST.

use serde::Serialize;

use super::topic::{Topic, Topics};

/// A change of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub name: &'static str,
    /// The topics whose readers receive it; if empty, all do.
    pub topics: Vec<Topic>,
    /// One line of JSON.
    pub data: String,
}

impl Change {
    /// Builds the change of an object.
    ///
    /// # Errors
    /// Fails if the object cannot be serialized.
    pub fn new(
        name: &'static str,
        topics: Vec<Topic>,
        object: &impl Serialize,
    ) -> Result<Change, serde_json::Error> {
        Ok(Change {
            name,
            topics,
            data: serde_json::to_string(object)?,
        })
    }

    /// The reader has missed events and must request everything again.
    pub fn reset() -> Change {
        Change {
            name: "reset",
            topics: Vec::new(),
            data: "{}".to_owned(),
        }
    }
}

/// A numbered change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageEvent {
    pub sequence: u64,
    pub change: Change,
}

impl PageEvent {
    /// Whether it belongs to one of these topics.
    pub fn concerns(&self, topics: &Topics) -> bool {
        let about = &self.change.topics;
        about.is_empty() || about.iter().any(|topic| topics.contains(topic))
    }
}
