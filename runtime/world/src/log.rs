//! The log of a run: a numbered line for each event, a hash of all lines, and the violations that oracles found.

use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use napreduce_protocol::lock;
use napreduce_protocol::printing::print;
use tokio::sync::watch;
use tokio::time::Instant;
use xxhash_rust::xxh3::Xxh3;

/// What is printed of a log while it grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Echo {
    /// Every line.
    Lines,
    /// Nothing.
    Silent,
}

/// Whether a run continues after a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterViolation {
    /// The run continues and may find more violations.
    GoOn,
    /// The run ends at once.
    End,
}

/// The log of a run, shared by all actors.
#[derive(Debug, Clone)]
pub struct Log {
    shared: Arc<SharedLog>,
}

#[derive(Debug)]
struct SharedLog {
    began: Instant,
    /// The directory of the run, whose name differs between runs of one seed.
    directory: String,
    echo: Echo,
    /// Number of the last event to log.
    until: Option<u64>,
    after_violation: AfterViolation,
    is_full: watch::Sender<bool>,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    count: u64,
    hash: Xxh3,
    violations: Vec<String>,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

impl Log {
    /// Creates the log of a run in `directory` that begins now and ends with the event of number `until`, if given.
    pub fn new(
        directory: &Path,
        echo: Echo,
        until: Option<u64>,
        after_violation: AfterViolation,
    ) -> Log {
        Log {
            shared: Arc::new(SharedLog {
                began: Instant::now(),
                directory: directory.display().to_string(),
                echo,
                until,
                after_violation,
                is_full: watch::Sender::new(false),
                lines: Mutex::default(),
            }),
        }
    }

    /// Logs an event of an actor.
    pub fn event(&self, actor: impl Display, what: impl Display) {
        let mut lines = self.lines();
        if self.shared.until.is_some_and(|until| lines.count >= until) {
            return;
        }
        lines.count += 1;
        let at = self.elapsed();
        let text = what.to_string().replace(&self.shared.directory, "RUN");
        let line = format!(
            "{:>6} {:>6}.{:06} {actor}: {text}\n",
            lines.count,
            at.as_secs(),
            at.subsec_micros()
        );
        lines.hash.update(line.as_bytes());
        if self.shared.echo == Echo::Lines {
            print(line);
        }
        if self.shared.until == Some(lines.count) {
            self.shared.is_full.send_replace(true);
        }
    }

    /// Logs that something happened which must not happen.
    pub fn violation(&self, actor: impl Display, what: impl Display) {
        let text = what.to_string().replace(&self.shared.directory, "RUN");
        self.event(&actor, format_args!("VIOLATION: {text}"));
        self.lines().violations.push(format!("{actor}: {text}"));
        if self.shared.after_violation == AfterViolation::End {
            self.shared.is_full.send_replace(true);
        }
    }

    /// Waits until the event was logged at which the run ends.
    pub async fn full(&self) {
        let mut is_full = self.shared.is_full.subscribe();
        // This log has the sender.
        let _ = is_full.wait_for(|full| *full).await;
    }

    /// Returns the time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.shared.began.elapsed()
    }

    /// Returns the number of events.
    pub fn count(&self) -> u64 {
        self.lines().count
    }

    /// Returns the hash of all lines.
    pub fn hash(&self) -> u64 {
        self.lines().hash.digest()
    }

    /// Returns the violations.
    pub fn violations(&self) -> Vec<String> {
        self.lines().violations.clone()
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        lock(&self.shared.lines)
    }
}
