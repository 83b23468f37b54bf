//! What the daemons log, as events of the run.

use std::fmt::{Debug, Write};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::log::Log;

/// The target of violations that the daemons find themselves.
const ORACLE: &str = "oracle";
/// Parts of lines about events and orders that fit no row of a table of states. Messages cross on the network, but each
/// table has rows for that.
const ILLEGAL: [&str; 2] = [" and cannot take ", ": the attempt is "];

/// Writes the lines of the daemons to the log of a run.
pub struct DaemonLog {
    log: Log,
}

impl DaemonLog {
    /// Creates a subscriber for this log.
    pub fn new(log: &Log) -> DaemonLog {
        DaemonLog { log: log.clone() }
    }
}

impl Subscriber for DaemonLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() <= Level::INFO
            && ["coordinator", "worker", ORACLE].contains(&metadata.target())
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let target = event.metadata().target();
        if target == ORACLE {
            return self.log.violation("coordinator", line.message);
        }
        let actor = if line.worker.is_empty() {
            target
        } else {
            &line.worker
        };
        if ILLEGAL.iter().any(|part| line.message.contains(part)) {
            self.log.violation(actor, &line.message);
        }
        self.log
            .event(actor, format_args!("logs: {}", line.message));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The fields of a logged line.
#[derive(Default)]
struct Line {
    message: String,
    worker: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = match field.name() {
            "message" => &mut self.message,
            "worker" => &mut self.worker,
            _ => return,
        };
        // Writing to a string does not fail.
        let _ = write!(text, "{value:?}");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}
