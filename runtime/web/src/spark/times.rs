//! Moments, as Spark writes them: `2026-11-22T01:29:01.000GMT`.
//!
//! Owns both ways. Does not own what they are of.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The end of what has not ended.
pub const NEVER: &str = "1969-12-31T23:59:59.999GMT";

pub fn written(millis: u64) -> String {
    let at = i64::try_from(millis).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
    at.unwrap_or(Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%S.%3fGMT").to_string()
}

/// A moment that a query says, in milliseconds since 1970: as it is written, with another zone, or the
/// beginning of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MomentAsked(pub u64);

impl FromStr for MomentAsked {
    type Err = String;

    fn from_str(text: &str) -> Result<MomentAsked, String> {
        let utc = text.strip_suffix("GMT").unwrap_or(text).trim_end();
        // A date and time without a zone is read from the rest alone, whatever zone stands behind it.
        let civil = || utc.parse::<DateTime>().ok().filter(|_| !utc.contains('['));
        let in_utc = || civil()?.to_zoned(TimeZone::UTC).ok().map(|there| there.timestamp());
        let at = utc.parse::<Timestamp>().ok().or_else(in_utc);
        let at = at.ok_or("write it as 2026-11-22 or 2026-11-22T01:29:01.000GMT")?;
        Ok(MomentAsked(u64::try_from(at.as_millisecond()).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_and_read_as_spark_does() {
        assert_eq!(written(0), "1970-01-01T00:00:00.000GMT");
        assert_eq!(written(1_790_000_000_070), "2026-09-21T14:13:20.070GMT");
        assert!(written(u64::MAX).starts_with("9999-12-"), "{}", written(u64::MAX));
        for (text, millis) in [
            ("2026-09-21T14:13:20.070GMT", 1_790_000_000_070),
            ("2026-09-21T14:13:20.070Z", 1_790_000_000_070),
            ("2026-09-21T16:13:20+02:00", 1_790_000_000_000),
            ("2026-09-21", 1_789_948_800_000),
            ("1960-01-01", 0),
        ] {
            assert_eq!(text.parse(), Ok(MomentAsked(millis)), "{text}");
        }
        for text in [
            "",
            "GMT",
            "yesterday",
            "2026-13-01",
            "1790000000000",
            "-1",
            "2026-09-21T14:13:20.070CET",
            "2026-09-21[Europe/Paris]",
        ] {
            assert!(text.parse::<MomentAsked>().is_err(), "{text}");
        }
    }
}
