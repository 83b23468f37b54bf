//! Parses and prints sizes and times: `64MiB`, `1G`, `512k`; `200ms`, `1h30m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// A number of bytes, read from and printed as a number with a unit.
///
/// `k`, `M`, `G`, `T` and `KiB`, `MiB`, `GiB`, `TiB` are powers of 1024; `kB`, `MB`, `GB`, `TB` powers of
/// 1000; upper and lower case are the same. No unit means bytes.
///
/// ```
/// use napreduce_protocol::ByteSize;
///
/// assert_eq!("64MiB".parse::<ByteSize>()?.bytes(), 64 << 20);
/// assert_eq!("512k".parse::<ByteSize>()?.bytes(), 512 << 10);
/// assert_eq!(ByteSize::new(1 << 30).to_string(), "1GiB");
/// # Ok::<(), napreduce_protocol::ByteSizeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

/// An invalid size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ByteSizeError {
    /// Not a number and a unit.
    #[error(
        "{text:?} is not a size; write a whole number of bytes, or one with a unit: 512k, 64MiB, 1G, 10GB"
    )]
    Unreadable { text: String },
    /// More than 64 bits of bytes.
    #[error("{text:?} is more than {} bytes", u64::MAX)]
    TooLarge { text: String },
}

const BINARY_UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];

impl ByteSize {
    /// A size of this many bytes.
    pub const fn new(bytes: u64) -> Self {
        ByteSize(bytes)
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Three digits of it, for a table: `1.21 GiB`.
    pub fn rounded(self) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        // 1024 of a unit is shown as 1 of the next.
        while value >= 1023.5 && unit + 1 < units.len() {
            value /= 1024.0;
            unit += 1;
        }
        let digits = match value {
            _ if unit == 0 || value >= 100.0 => 0,
            _ if value >= 10.0 => 1,
            _ => 2,
        };
        format!("{value:.digits$} {}", units[unit])
    }
}

impl Serialize for ByteSize {
    /// As a number of bytes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

/// The longest time that is read. Anything longer is a mistake, and times so far ahead cannot be computed.
const TIME_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Reads a time: `90s`, `10m`, `1h30m`, `200ms`, `2d`.
///
/// # Errors
/// Fails for an invalid or negative time, and for one beyond 100 years.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(napreduce_protocol::parse_time("1h30m"), Ok(Duration::from_secs(5400)));
/// assert!(napreduce_protocol::parse_time("soon").is_err());
/// ```
pub fn parse_time(text: &str) -> Result<Duration, String> {
    // "M" is months to humantime, and a mistake for minutes.
    let time = humantime::parse_duration(text)
        .ok()
        .filter(|_| !text.contains('M'));
    match time {
        Some(time) if time > TIME_MAX => Err(format!(
            "{text:?} is too long; write 876000h (100 years) at most"
        )),
        Some(time) => Ok(time),
        None => Err(format!(
            "{text:?} is not a time; write for example 200ms, 90s, 10m or 1h30m"
        )),
    }
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, ByteSizeError> {
        let unreadable = || ByteSizeError::Unreadable {
            text: text.to_owned(),
        };
        let too_large = || ByteSizeError::TooLarge {
            text: text.to_owned(),
        };
        let digits_end = text
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(text.len());
        let (digits, unit) = text.split_at(digits_end);
        if digits.is_empty() {
            return Err(unreadable());
        }
        let factor = unit_bytes(unit.trim_start()).ok_or_else(unreadable)?;
        // Only digits are left, so that the one way to fail is too many of them.
        let number: u64 = digits.parse().map_err(|_| too_large())?;
        number
            .checked_mul(factor)
            .map(ByteSize)
            .ok_or_else(too_large)
    }
}

fn unit_bytes(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    })
}

impl fmt::Display for ByteSize {
    /// Exact: the largest binary unit that leaves a whole number, otherwise bytes.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = BINARY_UNITS
            .iter()
            .find(|(_, shift)| self.0 != 0 && self.0.is_multiple_of(1 << shift));
        match unit {
            Some((name, shift)) => write!(formatter, "{}{name}", self.0 >> shift),
            None => write!(formatter, "{}B", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Result<u64, String> {
        text.parse::<ByteSize>()
            .map(ByteSize::bytes)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn byte_size_units_are_binary_or_decimal() {
        for (text, expected) in [
            ("0", 0),
            ("17", 17),
            ("17B", 17),
            ("512k", 512 << 10),
            ("512K", 512 << 10),
            ("64MiB", 64 << 20),
            ("64 mib", 64 << 20),
            ("1G", 1 << 30),
            ("2T", 2 << 40),
            ("10kB", 10_000),
            ("10MB", 10_000_000),
            ("3GB", 3_000_000_000),
            ("16777215TiB", 16_777_215 << 40),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn byte_size_parse_error_quotes_text() {
        for text in ["", "M", "-1", "1.5G", "1 Mi B", "12X", "0x10", "１"] {
            let message = bytes(text).expect_err("it is no size");
            assert!(
                message.starts_with(&format!("{text:?} is not a size; write ")),
                "{message}"
            );
        }
        for text in ["18446744073709551616", "16777216TiB"] {
            assert_eq!(
                bytes(text),
                Err(format!("{text:?} is more than 18446744073709551615 bytes"))
            );
        }
    }

    #[test]
    fn parse_time_rejects_more_than_a_century() {
        assert_eq!(parse_time("876000h"), Ok(TIME_MAX));
        for text in ["876000h1s", "99999999999h"] {
            assert_eq!(
                parse_time(text),
                Err(format!(
                    "{text:?} is too long; write 876000h (100 years) at most"
                ))
            );
        }
        for text in ["99999999999999999999h", "-1s", "soon", "10M", "5", ""] {
            let error = parse_time(text).expect_err("it is not a time");
            assert!(
                error.starts_with(&format!("{text:?} is not a time")),
                "{error}"
            );
        }
    }

    #[test]
    fn byte_size_in_tables_has_three_digits() {
        for (bytes, shown) in [
            (999, "999 B"),
            (268_435_456, "256 MiB"),
            (1_300_000_000, "1.21 GiB"),
            ((1 << 30) - 24, "1.00 GiB"),
        ] {
            assert_eq!(ByteSize::new(bytes).rounded(), shown);
        }
    }

    #[test]
    fn byte_size_display_parses_back() {
        for size in [0, 1, 1023, 1024, 1025, 1 << 20, 3 << 30, 5 << 40, u64::MAX] {
            assert_eq!(bytes(&ByteSize::new(size).to_string()), Ok(size));
        }
        assert_eq!(ByteSize::new(64 << 20).to_string(), "64MiB");
        assert_eq!(ByteSize::new(1000).to_string(), "1000B");
    }
}
