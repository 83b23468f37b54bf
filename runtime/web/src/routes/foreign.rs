//! What the queries of other dialects have in common.
//!
//! Owns windows and words. Does not own which words there are, of which each has its own (`crate::hadoop`,
//! `crate::spark`).

use std::str::FromStr;

use super::call::Call;
use crate::problem::Problem;

/// Whether a time lies between two others; what has not ended lies in no window of ends.
pub fn lies_in(at: Option<u64>, (begin, end): (Option<u64>, Option<u64>)) -> bool {
    match at {
        Some(at) => begin.is_none_or(|begin| at >= begin) && end.is_none_or(|end| at <= end),
        None => begin.is_none() && end.is_none(),
    }
}

/// Words that are separated by commas, or said one by one, if there are any.
///
/// # Errors
/// When one of them is none of these.
pub fn words<T: FromStr<Err = String>>(call: &Call<'_>, field: &str) -> Result<Option<Vec<T>>, Problem> {
    let said = call.query.iter().filter(|(name, _)| name == field).flat_map(|(_, said)| said.split(','));
    let words = said.map(str::trim).filter(|word| !word.is_empty());
    let words: Vec<T> = words.map(|word| word.parse().map_err(Problem::wrong)).collect::<Result<_, _>>()?;
    Ok((!words.is_empty()).then_some(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_its_ends_and_nothing_that_goes_on() {
        assert!(lies_in(Some(5), (Some(5), Some(5))));
        assert!(!lies_in(Some(4), (Some(5), None)) && !lies_in(Some(6), (None, Some(5))));
        assert!(lies_in(None, (None, None)) && !lies_in(None, (Some(0), None)));
    }
}
