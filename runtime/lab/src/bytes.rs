//! Owns sizes in bytes as arguments and reports show them: `256MiB`, `1GiB`, `4096`.
//! Reading them is datagen's; printing gives back a text that reads as the same size, here and in the job programs.

use std::fmt;
use std::str::FromStr;

use datagen::sizes::{SizeError, parse_bytes};
use serde::{Serialize, Serializer};

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<ByteSize, SizeError> {
        parse_bytes(text).map(ByteSize)
    }
}

impl fmt::Display for ByteSize {
    /// The largest binary unit that expresses the size exactly: `256MiB`, or plain bytes when none does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match exact.iter().find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor)) {
            Some((name, factor)) => write!(f, "{}{name}", self.0 / factor),
            None => write!(f, "{}", self.0),
        }
    }
}

impl ByteSize {
    /// The size rounded to three digits for a table: `1.21 GiB`.
    pub fn rounded(self) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        // What would be shown as 1024 of a unit is 1 of the next.
        while value >= 1023.5 && unit + 1 < units.len() {
            value /= 1024.0;
            unit += 1;
        }
        let digits = if unit == 0 || value >= 100.0 {
            0
        } else if value >= 10.0 {
            1
        } else {
            2
        };
        format!("{value:.digits$} {}", units[unit])
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Option<u64> {
        text.parse::<ByteSize>().ok().map(|size| size.0)
    }

    #[test]
    fn sizes_are_printed_in_the_largest_exact_unit() {
        assert_eq!(ByteSize(256 << 20).to_string(), "256MiB");
        assert_eq!(ByteSize(1 << 30).to_string(), "1GiB");
        assert_eq!(ByteSize(10_000_000).to_string(), "10000000");
        assert_eq!(ByteSize(0).to_string(), "0");
    }

    #[test]
    fn rounded_for_tables() {
        assert_eq!(ByteSize(999).rounded(), "999 B");
        assert_eq!(ByteSize(268_435_456).rounded(), "256 MiB");
        assert_eq!(ByteSize(1_300_000_000).rounded(), "1.21 GiB");
        assert_eq!(ByteSize((1 << 30) - 24).rounded(), "1.00 GiB");
    }

    proptest! {
        #[test]
        fn printed_sizes_read_back(bytes in any::<u64>()) {
            prop_assert_eq!(parse(&ByteSize(bytes).to_string()), Some(bytes));
        }
    }
}
