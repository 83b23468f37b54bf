//! What is to be done with rows that cannot be read.
//!
//! Owns the choice, as `--bad-rows` gives it. Does not own what makes a row bad: formats of rows say that.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What becomes of a row that is not of the job's type: `--bad-rows fail|skip|N`. Rows that are left out are
/// counted as `BAD_ROWS`, and the first one is quoted in the log of its task. `--bad-records` is the same for
/// records that the job's own map calls [bad](crate::builder::BadRecord), counted as `BAD_RECORDS`.
///
/// ```
/// use napreduce::input::BadRows;
///
/// assert_eq!("skip".parse(), Ok(BadRows::Skip));
/// assert_eq!("20".parse(), Ok(BadRows::AtMost(20)));
/// assert_eq!(BadRows::default().to_string(), "fail");
/// assert!("some".parse::<BadRows>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BadRows {
    /// The first one fails the job.
    #[default]
    Fail,
    /// They are left out, however many there are.
    Skip,
    /// So many are left out in each map task; one more fails the job.
    AtMost(u64),
}

impl FromStr for BadRows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fail" => Ok(BadRows::Fail),
            "skip" => Ok(BadRows::Skip),
            number => number.parse().map(BadRows::AtMost).map_err(|_| {
                format!(
                    "{number:?} is not allowed; allowed: fail, skip, or how many a map task may leave out"
                )
            }),
        }
    }
}

impl fmt::Display for BadRows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadRows::Fail => formatter.write_str("fail"),
            BadRows::Skip => formatter.write_str("skip"),
            BadRows::AtMost(number) => write!(formatter, "{number}"),
        }
    }
}
