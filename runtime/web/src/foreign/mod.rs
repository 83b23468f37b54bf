//! What the dialects of others share: identifiers, where an attempt is, how long it was suspended.
//!
//! Owns these. Does not own the names of fields and states, of which each dialect has its own (`hadoop`,
//! `spark`), nor routes.

/// Reads listed enums by their words in any case, and refuses others in the dialect's own form.
macro_rules! read_words {
    ($($type:ident: $refusal:literal),+) => {$(
        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<$type, String> {
                let known = $type::of_word(&text.to_ascii_uppercase());
                known.ok_or_else(|| format!($refusal, text))
            }
        }
    )+};
}

mod ids;
mod tried;

use napreduce_protocol::{WorkerPhase, WorkerSummary};

pub use ids::{app_attempt_id, application_id, attempt_id, container_id, from_hadoop, job_id, task_id};
pub use tried::{Naptimes, TriedState};

/// What stands where others say which version of theirs they are.
pub const VERSION: &str = concat!("napreduce ", env!("CARGO_PKG_VERSION"));

/// Whether a worker is still there, if only for as long as it takes to leave.
pub fn is_there(worker: &WorkerSummary) -> bool {
    !matches!(worker.state, WorkerPhase::Lost | WorkerPhase::Left)
}
