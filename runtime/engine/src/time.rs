//! Time in the engine: integer microseconds that the driver passes in. Contains the two types, their
//! saturating arithmetic, and their text form.

use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

use crate::ratio::Ratio;

/// An instant: microseconds since an origin that the driver chose.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Time(pub u64);

/// A duration in microseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Span(pub u64);

impl Span {
    /// Creates a span of whole milliseconds.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000))
    }

    /// Creates a span of whole seconds.
    pub const fn from_secs(seconds: u64) -> Span {
        Span(seconds.saturating_mul(1_000_000))
    }

    /// Returns the span in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }
}

impl Time {
    /// Returns the span since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// An invalid span.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid time span {0:?}: expected a number and a unit, such as 250us, 500ms, 1.35s, 10m or 2h"
)]
pub struct SpanError(pub String);

/// The units of a span in text, with their microseconds.
const UNITS: [(&str, u64); 5] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
];

impl std::str::FromStr for Span {
    type Err = SpanError;

    /// Parses `500ms` or `1.35s`: a whole number of microseconds, in a named unit.
    fn from_str(text: &str) -> Result<Span, SpanError> {
        let wrong = || SpanError(text.to_owned());
        let unit_at = text
            .find(|c: char| c.is_ascii_alphabetic())
            .ok_or_else(wrong)?;
        let (number, unit) = text.split_at(unit_at);
        let (_, micros) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(wrong)?;
        let number: Ratio = number.parse().map_err(|_| wrong())?;
        let span = number * Ratio::whole(*micros);
        if span.denominator() != 1 {
            return Err(wrong());
        }
        u64::try_from(span.numerator())
            .map(Span)
            .map_err(|_| wrong())
    }
}

impl Span {
    /// Returns the span as [`str::parse`] reads it, in the largest unit that needs no decimals.
    pub fn to_text(self) -> String {
        let whole = UNITS
            .iter()
            .rev()
            .find(|(_, micros)| self.0.is_multiple_of(*micros) && self.0 >= *micros);
        let (unit, micros) = whole.unwrap_or(&("s", 1_000_000));
        format!("{}{unit}", self.0 / micros)
    }
}

impl Span {
    /// Returns the span rounded for people: `0s`, `4ms`, `0.7s`, `15s`, `2m 5s`, `3h 20m`.
    pub fn rounded(self) -> String {
        let to = |unit: u64| self.0.saturating_add(unit / 2) / unit;
        match self.0 {
            0 => "0s".to_owned(),
            1..1_000 => "under 1ms".to_owned(),
            1_000..99_500 => format!("{}ms", to(1_000)),
            99_500..59_950_000 if to(100_000) % 10 == 0 => format!("{}s", to(1_000_000)),
            99_500..59_950_000 => format!("{}.{}s", to(100_000) / 10, to(100_000) % 10),
            59_950_000..3_599_500_000 => two(to(1_000_000), 60, "m", "s"),
            _ => two(to(60_000_000), 60, "h", "m"),
        }
    }
}

/// Formats an amount in two units, or in the larger one alone.
fn two(amount: u64, of: u64, large: &str, small: &str) -> String {
    match amount % of {
        0 => format!("{}{large}", amount / of),
        rest => format!("{}{large} {rest}{small}", amount / of),
    }
}

/// Serde for spans in configuration files: a number and a unit.
pub mod text {
    use super::Span;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes `3s`.
    pub fn serialize<S: Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&span.to_text())
    }

    /// Reads `3s`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// Serde for optional spans: a number and a unit, or `never`.
pub mod text_or_never {
    use super::Span;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes `3s` or `never`.
    pub fn serialize<S: Serializer>(span: &Option<Span>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&span.map_or_else(|| "never".to_owned(), Span::to_text))
    }

    /// Reads `3s` or `never`.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Span>, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "never" {
            return Ok(None);
        }
        text.parse()
            .map(Some)
            .map_err(|error| D::Error::custom(format!("{error}, or never")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_parse_and_print_with_unit() {
        for (text, micros) in [
            ("250us", 250),
            ("500ms", 500_000),
            ("1.35s", 1_350_000),
            ("10m", 600_000_000),
            ("0s", 0),
        ] {
            let span: Span = text.parse().expect(text);
            assert_eq!(span, Span(micros), "{text}");
            assert_eq!(span.to_text().parse(), Ok(span), "{text}");
        }
        for wrong in [
            "",
            "3",
            "s",
            "3 s",
            "-1s",
            "0.5us",
            "1e3s",
            "99999999999999999h",
            "3weeks",
        ] {
            assert_eq!(
                wrong.parse::<Span>(),
                Err(SpanError(wrong.to_owned())),
                "{wrong}"
            );
        }
        assert_eq!(
            (Span::from_secs(15).to_text(), Span(1_350_000).to_text()),
            ("15s".into(), "1350ms".into())
        );
    }

    #[test]
    fn spans_are_rounded_for_display() {
        for (micros, text) in [
            (0, "0s"),
            (900, "under 1ms"),
            (4_200, "4ms"),
            (99_499, "99ms"),
            (99_500, "0.1s"),
            (719_043, "0.7s"),
            (999_999, "1s"),
            (10_450_000, "10.5s"),
            (59_949_999, "59.9s"),
            (59_950_000, "1m"),
            (125_000_000, "2m 5s"),
            (3_599_499_999, "59m 59s"),
            (12_000_000_000, "3h 20m"),
        ] {
            assert_eq!(Span(micros).rounded(), text, "{micros}");
        }
        assert!(Span(u64::MAX).rounded().ends_with('m'));
    }
}
