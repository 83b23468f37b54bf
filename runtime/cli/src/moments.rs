//! Parser of times: `2026-11-23`, `2026-11-23T10:30`, `2026-11-23T10:30:00Z` and `2h`.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, anyhow};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use napreduce_protocol::parse_time;

/// A moment, or how long ago it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenMoment {
    At(Timestamp),
    /// In the local time zone.
    Local(DateTime),
    Ago(Duration),
}

impl FromStr for WrittenMoment {
    type Err = String;

    fn from_str(text: &str) -> Result<WrittenMoment, String> {
        if let Ok(ago) = parse_time(text) {
            return Ok(WrittenMoment::Ago(ago));
        }
        let at = text.parse().map(WrittenMoment::At).ok();
        at.or_else(|| text.parse().map(WrittenMoment::Local).ok()).ok_or_else(|| {
            format!(
                "invalid time {text:?}: expected 2026-11-23, 2026-11-23T10:30 (local), 2026-11-23T10:30:00Z, or 2h for two hours ago"
            )
        })
    }
}

impl WrittenMoment {
    /// Returns milliseconds since 1970; `zone` is the local time zone.
    ///
    /// # Errors
    /// If the time is before 1970 or after 9998.
    pub fn millis(self, now: Timestamp, zone: &TimeZone) -> Result<u64> {
        let stamp = match self {
            WrittenMoment::At(stamp) => stamp,
            WrittenMoment::Local(civil) => civil
                .to_zoned(zone.clone())
                .map_err(|_| out_of_range(civil))?
                .timestamp(),
            WrittenMoment::Ago(ago) => now.checked_sub(ago).map_err(|_| out_of_range(now))?,
        };
        let millis = u64::try_from(stamp.as_millisecond());
        millis.map_err(|_| anyhow!("{stamp}: before 1970; give a later time"))
    }
}

fn out_of_range(moment: impl Display) -> anyhow::Error {
    anyhow!("{moment}: out of range; give a year from 1970 to 9998")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(text: &str) -> u64 {
        let now = Timestamp::from_second(1_790_000_000).expect("a time");
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        text.parse::<WrittenMoment>()
            .expect(text)
            .millis(now, &zone)
            .expect(text)
    }

    #[test]
    fn time_is_read_in_every_form() {
        assert_eq!(millis("2026-09-21T14:13:20Z"), 1_790_000_000_000);
        assert_eq!(millis("2026-09-21T16:13:20+02:00"), 1_790_000_000_000);
        assert_eq!(
            millis("2026-09-21T16:13:20"),
            1_790_000_000_000,
            "without a zone it is local"
        );
        assert_eq!(millis("2026-09-21 16:13"), 1_789_999_980_000);
        assert_eq!(
            millis("2026-09-21"),
            1_789_941_600_000,
            "midnight in local time"
        );
        assert_eq!(millis("2h"), 1_790_000_000_000 - 7_200_000);
    }

    #[test]
    fn invalid_time_is_rejected_with_valid_forms() {
        for text in ["", "soon", "yesterday", "26-09-21", "2026-13-01", "14:13"] {
            let error = text.parse::<WrittenMoment>().expect_err(text);
            assert!(error.contains("expected 2026-11-23"), "{error}");
        }
        let early = "1969-01-01T00:00:00Z"
            .parse::<WrittenMoment>()
            .expect("a moment");
        assert!(early.millis(Timestamp::UNIX_EPOCH, &TimeZone::UTC).is_err());
        let late = "9999-12-31T23:59"
            .parse::<WrittenMoment>()
            .expect("a moment");
        let zone = TimeZone::fixed(jiff::tz::offset(-12));
        let error = late
            .millis(Timestamp::UNIX_EPOCH, &zone)
            .expect_err("it is out of range")
            .to_string();
        assert_eq!(
            error,
            "9999-12-31T23:59:00: out of range; give a year from 1970 to 9998"
        );
    }
}
