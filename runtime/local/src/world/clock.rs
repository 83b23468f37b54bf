//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

use napreduce_protocol::whole_micros;

#[cfg(feature = "simulated")]
use super::Node;

/// The wall clock of a machine. It may jump; time spans are measured with [`clock::now`](crate::clock::now).
#[derive(Debug, Clone)]
pub struct Clock {
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    System,
    #[cfg(feature = "simulated")]
    Node(Node),
}

impl Clock {
    pub(super) fn system() -> Clock {
        Clock {
            source: Source::System,
        }
    }

    #[cfg(feature = "simulated")]
    pub(super) fn of_node(node: Node) -> Clock {
        Clock {
            source: Source::Node(node),
        }
    }

    /// Returns the time in microseconds since 1970.
    pub fn unix_micros(&self) -> u64 {
        match &self.source {
            Source::System => {
                let since = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                whole_micros(since)
            }
            #[cfg(feature = "simulated")]
            Source::Node(node) => node.unix_micros(),
        }
    }
}
