//! A window of time that a query asks for, and how finely.
//!
//! Owns reading them. Does not own what lies in it.

use super::call::Call;
use crate::answers::COLUMNS;
use crate::clock::now_millis;
use crate::per_job::Window;
use crate::problem::Problem;

/// From `from` until `until`; as long as this and until now, unless they are said.
///
/// # Errors
/// When it ends before it begins, or lies beyond what microseconds can say.
pub fn asked_window(call: &Call<'_>, millis: u64) -> Result<Window, Problem> {
    let until = call.asked::<u64>("until")?.unwrap_or_else(now_millis);
    let from = call.asked::<u64>("from")?.unwrap_or_else(|| until.saturating_sub(millis));
    if from > until || until > u64::MAX / 1_000 {
        return Err(Problem::wrong(format!("a window from {from} until {until} is none")));
    }
    Ok(Window { from, until })
}

/// Columns of a lane in a timeline that is thinned.
pub fn asked_columns(call: &Call<'_>) -> Result<Option<u32>, Problem> {
    Ok(Some(call.asked("columns")?.unwrap_or(COLUMNS)))
}
