//! Exact ratios for weights, shares and thresholds, so that no decision depends on rounding.

use num_rational::Ratio as Rational;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// An exact ratio of two integers. In configuration files: an integer, a decimal (`0.8`) or a string
/// (`"p/q"`), always taken at its decimal value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ratio(Rational<i128>);

/// An invalid ratio.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid ratio {0:?}: expected an integer, a decimal such as 0.8, or p/q, of at most 18 digits each"
)]
pub struct RatioError(pub String);

impl Ratio {
    /// 0.
    pub const ZERO: Ratio = Ratio(Rational::new_raw(0, 1));
    /// 1.
    pub const ONE: Ratio = Ratio(Rational::new_raw(1, 1));

    /// Creates `numerator / denominator`.
    ///
    /// # Panics
    /// Panics if the denominator is zero.
    pub fn new(numerator: i128, denominator: i128) -> Ratio {
        Ratio(Rational::new(numerator, denominator))
    }

    /// Creates a ratio from an integer.
    pub fn whole(number: u64) -> Ratio {
        Ratio(Rational::from_integer(i128::from(number)))
    }

    /// Returns the numerator in lowest terms; it carries the sign.
    pub fn numerator(self) -> i128 {
        *self.0.numer()
    }

    /// Returns the denominator in lowest terms; positive.
    pub fn denominator(self) -> i128 {
        *self.0.denom()
    }

    /// Returns the nearest float, for display and statistics only.
    pub fn to_f64(self) -> f64 {
        *self.0.numer() as f64 / *self.0.denom() as f64
    }

    /// Returns this share of an amount, truncated to an integer; saturates at both ends of the range.
    pub fn of(self, amount: u64) -> u64 {
        let share = i128::from(amount).saturating_mul(*self.0.numer()) / self.0.denom();
        u64::try_from(share.max(0)).unwrap_or(u64::MAX)
    }

    /// Returns this share of an amount, rounded up to an integer; saturates at both ends of the range.
    pub fn of_raised(self, amount: u64) -> u64 {
        let share = i128::from(amount).saturating_mul(*self.0.numer());
        let raised =
            share.div_euclid(*self.0.denom()) + i128::from(share.rem_euclid(*self.0.denom()) != 0);
        u64::try_from(raised.max(0)).unwrap_or(u64::MAX)
    }

    /// Returns this share of an amount, rounded to the nearest integer, halves up; saturates at both ends of
    /// the range.
    pub fn of_rounded(self, amount: u64) -> u64 {
        let doubled = i128::from(amount)
            .saturating_mul(2)
            .saturating_mul(*self.0.numer());
        let rounded = (doubled.saturating_add(*self.0.denom())).div_euclid(2 * self.0.denom());
        u64::try_from(rounded.max(0)).unwrap_or(u64::MAX)
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Ratio) -> Ordering {
        // Most are integers and need no division.
        if self.0.denom() == other.0.denom() {
            return self.0.numer().cmp(other.0.numer());
        }
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Ratio) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::ops::Add for Ratio {
    type Output = Ratio;
    fn add(self, other: Ratio) -> Ratio {
        Ratio(self.0 + other.0)
    }
}

impl std::ops::Sub for Ratio {
    type Output = Ratio;
    fn sub(self, other: Ratio) -> Ratio {
        Ratio(self.0 - other.0)
    }
}

impl std::ops::Mul for Ratio {
    type Output = Ratio;
    fn mul(self, other: Ratio) -> Ratio {
        Ratio(self.0 * other.0)
    }
}

impl std::ops::Div for Ratio {
    type Output = Ratio;
    fn div(self, other: Ratio) -> Ratio {
        Ratio(self.0 / other.0)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Ratio {
    type Err = RatioError;

    fn from_str(text: &str) -> Result<Ratio, RatioError> {
        let wrong = || RatioError(text.to_owned());
        let (above, below) = text.split_once('/').unwrap_or((text, "1"));
        let above = decimal(above).ok_or_else(wrong)?;
        let below = decimal(below).ok_or_else(wrong)?;
        if below == Rational::from_integer(0) {
            return Err(wrong());
        }
        Ok(Ratio(above / below))
    }
}

/// Parses a decimal number exactly. Its length is limited so that products of two such numbers do not
/// overflow.
fn decimal(text: &str) -> Option<Rational<i128>> {
    let (negative, digits) = text
        .strip_prefix('-')
        .map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || all.len() > 18 || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = Rational::new(
        all.parse::<i128>().ok()?,
        10_i128.pow(u32::try_from(fraction.len()).ok()?),
    );
    Some(if negative { -value } else { value })
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ratio, D::Error> {
        struct AnyNumber;
        impl Visitor<'_> for AnyNumber {
            type Value = Ratio;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer, a decimal such as 0.8, or a text \"p/q\"")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Ratio, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Ratio, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Ratio, E> {
                // The shortest text that parses to the same float is the text of the configuration file.
                self.visit_str(&number.to_string())
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Ratio, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(AnyNumber)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Ratio {
        text.parse().expect("a ratio")
    }

    #[test]
    fn ratio_text_parses_as_decimal() {
        assert_eq!(read("0.1"), Ratio::new(1, 10));
        assert_eq!(read("-1.50"), Ratio::new(-3, 2));
        assert_eq!(read("7"), Ratio::whole(7));
        assert_eq!(read("2/6"), Ratio::new(1, 3));
        for wrong in [
            "",
            "x",
            "1/0",
            "1e3",
            "1.2.3",
            "--1",
            "/",
            "1234567890123456789",
        ] {
            assert_eq!(wrong.parse::<Ratio>(), Err(RatioError(wrong.to_owned())));
        }
    }

    #[test]
    fn ratio_number_keeps_decimal_value() {
        let all: Vec<Ratio> = serde_json::from_str(r#"[0.1, 3, "1/3", -2]"#).expect("four ratios");
        assert_eq!(
            all,
            [
                Ratio::new(1, 10),
                Ratio::whole(3),
                Ratio::new(1, 3),
                Ratio::new(-2, 1)
            ]
        );
        let again = serde_json::to_string(&all).expect("text");
        assert_eq!(
            serde_json::from_str::<Vec<Ratio>>(&again).expect("the same"),
            all
        );
        assert!(serde_json::from_str::<Ratio>("\"many\"").is_err());
    }

    #[test]
    fn shares_are_rounded_and_saturate() {
        let raised = [
            (1, 2, 0),
            (1, 2, 1),
            (1, 2, 4),
            (2, 3, 3),
            (2, 3, 4),
            (-1, 2, 3),
        ];
        let raised =
            raised.map(|(above, below, amount)| Ratio::new(above, below).of_raised(amount));
        assert_eq!(raised, [0, 1, 2, 2, 3, 0]);
        assert_eq!(Ratio::new(3, 2).of_raised(u64::MAX), u64::MAX);
        assert_eq!(
            (Ratio::new(1, 2).of(5), Ratio::new(1, 2).of_rounded(5)),
            (2, 3)
        );
        assert_eq!(
            (
                Ratio::new(1, 3).of_rounded(4),
                Ratio::new(1, 3).of_rounded(5)
            ),
            (1, 2)
        );
        assert_eq!(Ratio::new(-1, 2).of(5), 0);
        assert_eq!(Ratio::whole(3).of(u64::MAX), u64::MAX);
    }
}
