//! The query parameters `from`, `until` and `columns`.

use napreduce_answers::COLUMNS;

use super::call::Call;
use crate::clock::now_millis;
use crate::per_job::Window;
use crate::problem::Problem;

/// Returns the requested window; by default it ends now and is `millis` long.
///
/// # Errors
/// `400` if `from` is after `until`, or if `until` does not fit in microseconds.
pub fn query_window(call: &Call<'_>, millis: u64) -> Result<Window, Problem> {
    let until = call.query_value::<u64>("until")?.unwrap_or_else(now_millis);
    let from = call
        .query_value::<u64>("from")?
        .unwrap_or_else(|| until.saturating_sub(millis));
    if from > until || until > u64::MAX / 1_000 {
        let detail = if from > until {
            format!("from ({from}) must not be after until ({until})")
        } else {
            format!("until ({until}) is out of range; expected milliseconds since 1970")
        };
        return Err(Problem::invalid(detail));
    }
    Ok(Window { from, until })
}

/// Returns the number of columns per lane to which a large timeline is reduced.
pub fn query_columns(call: &Call<'_>) -> Result<Option<u32>, Problem> {
    Ok(Some(call.query_value("columns")?.unwrap_or(COLUMNS)))
}
