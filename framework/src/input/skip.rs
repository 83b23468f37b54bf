//! The choice of how a job treats bad input: rows of another type than the job's, and records that its map rejects.

use std::fmt;
use std::str::FromStr;

use napreduce_task::counter;
use serde::{Deserialize, Serialize};

/// Counter of skipped rows in the report of a job.
pub(crate) const BAD_ROWS: &str = "BAD_ROWS";

/// Counter of skipped records in the report of a job.
pub(crate) const BAD_RECORDS: &str = "BAD_RECORDS";

/// How much bad input a map task skips: `--bad-input fail|skip|N` and
/// [`on_bad_input`](crate::JobRequest::on_bad_input).
///
/// Bad input are rows that are not of the job's type, counted as `BAD_ROWS`, and records that the job's own map reports
/// as [bad](crate::builder::BadRecord), counted as `BAD_RECORDS`. The log of a task quotes the first one of each.
///
/// ```
/// use napreduce::input::Skip;
///
/// assert_eq!("skip".parse(), Ok(Skip::All));
/// assert_eq!("20".parse(), Ok(Skip::AtMost(20)));
/// assert_eq!(Skip::default().to_string(), "fail");
/// assert!("some".parse::<Skip>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Skip {
    /// The job fails at the first bad row or record.
    #[default]
    None,
    /// Each map task skips this many rows and records together; the job fails at one more.
    AtMost(u64),
    /// All bad rows and records are skipped.
    All,
}

impl Skip {
    /// Checks whether this task may skip one more row or record. Fails with the limit, if there is one.
    pub(crate) fn check_one_more(self) -> Result<(), Option<u64>> {
        match self {
            Skip::None => Err(None),
            Skip::AtMost(most) if skipped() >= most => Err(Some(most)),
            Skip::AtMost(_) | Skip::All => Ok(()),
        }
    }
}

/// Returns how many rows and records this task has skipped; the counts survive a checkpoint.
fn skipped() -> u64 {
    counter(BAD_ROWS)
        .get()
        .saturating_add(counter(BAD_RECORDS).get())
}

impl FromStr for Skip {
    type Err = String;

    fn from_str(text: &str) -> Result<Skip, String> {
        match text {
            "fail" => Ok(Skip::None),
            "skip" => Ok(Skip::All),
            number => number.parse().map(Skip::AtMost).map_err(|_| {
                format!(
                    "{number:?} is invalid; use fail, skip, or the number that a map task may skip"
                )
            }),
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skip::None => formatter.write_str("fail"),
            Skip::AtMost(number) => write!(formatter, "{number}"),
            Skip::All => formatter.write_str("skip"),
        }
    }
}
