//! `--recorded DIR[@FROM..UNTIL]`: a directory and a range of submission times.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use napreduce_protocol::whole_millis;

use crate::moments::WrittenMoment;

/// A bound of submission times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    /// In milliseconds since 1970.
    Moment(u64),
    SinceFirst(Duration),
}

/// A directory and a window of submission times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedPlace {
    pub directory: PathBuf,
    from: Option<Bound>,
    until: Option<Bound>,
}

impl RecordedPlace {
    /// Parses the flag. The part after the last `@` is a window if it contains `..` and the whole is not an
    /// existing directory.
    pub fn parse(text: &str) -> Result<RecordedPlace> {
        let whole = || RecordedPlace {
            directory: PathBuf::from(text),
            from: None,
            until: None,
        };
        if PathBuf::from(text).exists() {
            return Ok(whole());
        }
        let Some((directory, times)) = text.rsplit_once('@') else {
            return Ok(whole());
        };
        let Some((from, until)) = times.split_once("..") else {
            return Ok(whole());
        };
        let bound = |text: &str| (!text.is_empty()).then(|| Bound::parse(text)).transpose();
        Ok(RecordedPlace {
            directory: PathBuf::from(directory),
            from: bound(from)?,
            until: bound(until)?,
        })
    }

    /// Returns the window in milliseconds since 1970, without its end. `first_millis` is the first submission of
    /// the history.
    pub fn window(&self, first_millis: u64) -> Result<(u64, u64)> {
        let at = |bound: Option<Bound>, without: u64| match bound {
            None => without,
            Some(Bound::Moment(millis)) => millis,
            Some(Bound::SinceFirst(time)) => first_millis.saturating_add(whole_millis(time)),
        };
        let from = at(self.from, 0);
        let until = at(self.until, u64::MAX);
        ensure!(from < until, "--recorded: FROM must be before UNTIL");
        Ok((from, until))
    }
}

impl Bound {
    fn parse(text: &str) -> Result<Bound> {
        let bound = match text.parse() {
            Ok(WrittenMoment::Ago(time)) => Some(Bound::SinceFirst(time)),
            Ok(moment) => moment
                .millis(Timestamp::UNIX_EPOCH, &TimeZone::UTC)
                .ok()
                .map(Bound::Moment),
            Err(_) => None,
        };
        bound.ok_or_else(|| {
            anyhow!(
                "--recorded: invalid time {text:?}; expected a time such as 2026-09-21T14:13:20Z, or 90s after the first \
                 submission"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u64 = 1_790_000_000_000;

    #[track_caller]
    fn check(text: &str, directory: &str, window: (u64, u64)) {
        let place = RecordedPlace::parse(text).expect("understood");
        assert_eq!(place.directory, PathBuf::from(directory));
        assert_eq!(place.window(FIRST).expect("a window"), window);
    }

    #[test]
    fn window_is_read_from_times_and_durations() {
        check("srv/nap", "srv/nap", (0, u64::MAX));
        check(
            "srv/nap@90s..2h",
            "srv/nap",
            (FIRST + 90_000, FIRST + 7_200_000),
        );
        check("srv/nap@..90s", "srv/nap", (0, FIRST + 90_000));
        check("nap@2026-09-21T14:13:20Z..", "nap", (FIRST, u64::MAX));
        check(
            "nap@2026-09-21T14:13:20..2026-09-21T16:13:30+02:00",
            "nap",
            (FIRST, FIRST + 10_000),
        );
        check(
            "nap@2026-09-21..2026-09-22",
            "nap",
            (1_789_948_800_000, 1_790_035_200_000),
        );
        check("ada@home/nap", "ada@home/nap", (0, u64::MAX));
        check("ada@home@1s..", "ada@home", (FIRST + 1_000, u64::MAX));
    }

    #[test]
    fn invalid_time_or_empty_window_is_rejected() {
        let error = RecordedPlace::parse("nap@soon..").expect_err("no time");
        assert!(
            error.to_string().contains("invalid time \"soon\""),
            "{error}"
        );
        let place = RecordedPlace::parse("nap@2h..90s").expect("understood");
        assert!(place.window(FIRST).is_err());
    }
}
