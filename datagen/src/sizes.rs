//! Parses counts and byte sizes such as `10M` and `1GiB`.

/// Error of a size given as text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// The text does not start with a number.
    #[error("{text:?} does not start with a number; write a size such as {example}")]
    NotNumber {
        text: String,
        /// Example of a valid size.
        example: &'static str,
    },
    /// The letters after the number are not a known unit.
    #[error("{text:?} has an unknown unit {unit:?}; choose {allowed}")]
    UnknownUnit {
        text: String,
        unit: String,
        allowed: &'static str,
    },
    /// The value is not a whole number.
    #[error("{text:?} is not a whole number")]
    NotWhole { text: String },
    /// The value does not fit in 64 bits.
    #[error("{text:?} is too large; the largest is {}", u64::MAX)]
    TooLarge { text: String },
}

/// Parses a count: a number, possibly with a decimal point, and `k`, `M`, `G` or `T` for powers of 1000.
///
/// # Errors
///
/// Fails when the text is not such a number, is not whole, or does not fit in 64 bits.
///
/// ```
/// assert_eq!(datagen::sizes::parse_count("10M"), Ok(10_000_000));
/// ```
pub fn parse_count(text: &str) -> Result<u64, SizeError> {
    parse(text, "10M", "k, M, G or T", |unit| match unit {
        "" => Some(1),
        "k" | "K" => Some(1000),
        "M" | "m" => Some(1_000_000),
        "G" | "g" => Some(1_000_000_000),
        "T" | "t" => Some(1_000_000_000_000),
        _ => None,
    })
}

/// Parses a size in bytes: a number, possibly with a decimal point, and a unit: `kB`, `MB`, `GB`, `TB` (or
/// without the B) for powers of 1000, `KiB`, `MiB`, `GiB`, `TiB` for powers of 1024. Units are
/// case-insensitive.
///
/// # Errors
///
/// Fails when the text is not such a number, is not whole, or does not fit in 64 bits.
///
/// ```
/// assert_eq!(datagen::sizes::parse_bytes("1GiB"), Ok(1 << 30));
/// assert_eq!(datagen::sizes::parse_bytes("1.5k"), Ok(1500));
/// ```
pub fn parse_bytes(text: &str) -> Result<u64, SizeError> {
    parse(
        text,
        "1GiB",
        "B, kB, MB, GB, TB, KiB, MiB, GiB or TiB",
        |unit| match unit.to_ascii_lowercase().as_str() {
            "" | "b" => Some(1),
            "k" | "kb" => Some(1000),
            "m" | "mb" => Some(1_000_000),
            "g" | "gb" => Some(1_000_000_000),
            "t" | "tb" => Some(1_000_000_000_000),
            "ki" | "kib" => Some(1 << 10),
            "mi" | "mib" => Some(1 << 20),
            "gi" | "gib" => Some(1 << 30),
            "ti" | "tib" => Some(1 << 40),
            _ => None,
        },
    )
}

fn parse(
    text: &str,
    example: &'static str,
    allowed: &'static str,
    factor: impl Fn(&str) -> Option<u64>,
) -> Result<u64, SizeError> {
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || (number.ends_with('.')) {
        return Err(SizeError::NotNumber {
            text: text.to_owned(),
            example,
        });
    }
    let unit = unit.trim_start();
    let factor = factor(unit).ok_or_else(|| SizeError::UnknownUnit {
        text: text.to_owned(),
        unit: unit.to_owned(),
        allowed,
    })?;
    let too_large = || SizeError::TooLarge {
        text: text.to_owned(),
    };
    // Decimal digits instead of a float: 0.1G is exactly 100 million.
    let mut scale = 1u128;
    let mut digits = 0u128;
    for digit in whole.bytes().chain(fraction.trim_end_matches('0').bytes()) {
        digits = digits
            .checked_mul(10)
            .and_then(|d| d.checked_add(u128::from(digit - b'0')))
            .ok_or_else(too_large)?;
    }
    for _ in fraction.trim_end_matches('0').bytes() {
        scale = scale.checked_mul(10).ok_or_else(too_large)?;
    }
    let product = digits
        .checked_mul(u128::from(factor))
        .ok_or_else(too_large)?;
    if product % scale != 0 {
        return Err(SizeError::NotWhole {
            text: text.to_owned(),
        });
    }
    u64::try_from(product / scale).map_err(|_| too_large())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<u64, &str>) {
        let read = parse_bytes(text).map_err(|error| error.to_string());
        match expected {
            Ok(size) => assert_eq!(read, Ok(size), "{text:?}"),
            Err(part) => {
                assert!(
                    read.as_ref().is_err_and(|error| error.contains(part)),
                    "{text:?}: {read:?}"
                )
            }
        }
    }

    #[test]
    fn parse_bytes_decimal_and_binary_units_are_accepted() {
        check("0", Ok(0));
        check("1000", Ok(1000));
        check("64MiB", Ok(64 << 20));
        check("64 mib", Ok(64 << 20));
        check("64M", Ok(64_000_000));
        check("0.1GB", Ok(100_000_000));
        check("1.50k", Ok(1500));
        check("18446744073709551615", Ok(u64::MAX));
    }

    #[test]
    fn parse_bytes_invalid_text_names_the_error() {
        check("", Err("does not start with a number"));
        check("-1", Err("does not start with a number"));
        check("GiB", Err("does not start with a number"));
        check("1.", Err("does not start with a number"));
        check("1.2.3", Err("does not start with a number"));
        check("1XB", Err("unknown unit \"XB\""));
        check("1.0001k", Err("not a whole number"));
        check("18446744073709551616", Err("too large"));
        check(
            "99999999999999999999999999999999999999999T",
            Err("too large"),
        );
    }

    #[test]
    fn parse_count_binary_unit_is_rejected() {
        assert_eq!(parse_count("1.5M"), Ok(1_500_000));
        assert!(parse_count("1MiB").is_err());
    }
}
