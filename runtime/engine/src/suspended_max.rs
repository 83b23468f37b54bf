//! The maximum number of suspended attempts per worker, with hysteresis after a worker was full.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The word for no limit.
const UNLIMITED: &str = "unlimited";

/// The maximum number of suspended attempts per worker.
///
/// ```
/// use napreduce_engine::SuspendedMax;
///
/// assert_eq!("3".parse(), Ok(SuspendedMax::AtMost(3)));
/// assert_eq!("unlimited".parse(), Ok(SuspendedMax::Unlimited));
/// assert_eq!(SuspendedMax::default().to_string(), "2");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspendedMax {
    /// A limit. A worker that has reached it takes another attempt only when at most half of the limit,
    /// rounded down, is still suspended. Otherwise each resumed attempt would immediately make room for
    /// another suspend, and so on.
    AtMost(u32),
    /// No limit.
    Unlimited,
}

impl SuspendedMax {
    /// Returns whether a worker is full, given whether it was and how many attempts are suspended there.
    pub(crate) fn is_full(self, was_full: bool, suspended: u32) -> bool {
        match self {
            SuspendedMax::Unlimited => false,
            SuspendedMax::AtMost(most) => suspended >= most || (was_full && suspended > most / 2),
        }
    }
}

impl Default for SuspendedMax {
    /// Two: suspended attempts keep their memory, and machines are sized for the running ones.
    fn default() -> SuspendedMax {
        SuspendedMax::AtMost(2)
    }
}

impl fmt::Display for SuspendedMax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SuspendedMax::AtMost(most) => write!(f, "{most}"),
            SuspendedMax::Unlimited => f.write_str(UNLIMITED),
        }
    }
}

/// Invalid text for a maximum of suspended attempts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is neither a number of attempts nor \"unlimited\"")]
pub struct NoSuspendedMax {
    text: String,
}

impl FromStr for SuspendedMax {
    type Err = NoSuspendedMax;

    fn from_str(text: &str) -> Result<SuspendedMax, NoSuspendedMax> {
        match text {
            UNLIMITED => Ok(SuspendedMax::Unlimited),
            number => match number.parse() {
                Ok(most) => Ok(SuspendedMax::AtMost(most)),
                Err(_) => Err(NoSuspendedMax {
                    text: text.to_owned(),
                }),
            },
        }
    }
}

impl Serialize for SuspendedMax {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            SuspendedMax::AtMost(most) => serializer.serialize_u32(*most),
            SuspendedMax::Unlimited => serializer.serialize_str(UNLIMITED),
        }
    }
}

impl<'de> Deserialize<'de> for SuspendedMax {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SuspendedMax, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

struct Written;

impl Visitor<'_> for Written {
    type Value = SuspendedMax;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of attempts or \"unlimited\"")
    }

    fn visit_u64<E: Error>(self, most: u64) -> Result<SuspendedMax, E> {
        most.try_into()
            .map(SuspendedMax::AtMost)
            .map_err(|_| self.refuse(most))
    }

    fn visit_i64<E: Error>(self, most: i64) -> Result<SuspendedMax, E> {
        most.try_into()
            .map(SuspendedMax::AtMost)
            .map_err(|_| self.refuse(most))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SuspendedMax, E> {
        text.parse().map_err(E::custom)
    }

    /// The form of no limit in journals from before there was a default.
    fn visit_unit<E: Error>(self) -> Result<SuspendedMax, E> {
        Ok(SuspendedMax::Unlimited)
    }
}

impl Written {
    fn refuse<E: Error>(&self, number: impl fmt::Display) -> E {
        E::custom(NoSuspendedMax {
            text: number.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_worker_accepts_at_half() {
        let full = |most: u32, counts: &[u32]| {
            let mut was_full = false;
            let step = |&count: &u32| {
                was_full = SuspendedMax::AtMost(most).is_full(was_full, count);
                was_full
            };
            counts.iter().map(step).collect::<Vec<_>>()
        };
        assert_eq!(
            full(4, &[3, 4, 3, 2, 3, 4, 3]),
            [false, true, true, false, false, true, true]
        );
        assert_eq!(
            full(5, &[5, 4, 3, 2]),
            [true, true, true, false],
            "half of five is two"
        );
        assert_eq!(full(2, &[1, 2, 1, 2]), [false, true, false, true]);
        assert_eq!(full(1, &[0, 1, 0]), [false, true, false]);
        assert_eq!(full(0, &[0, 0]), [true, true], "none is ever taken");
        assert!(!SuspendedMax::Unlimited.is_full(true, 1_000_000));
    }

    #[test]
    fn suspended_max_parses_number_or_word() {
        for (max, json) in [
            (SuspendedMax::AtMost(7), "7"),
            (SuspendedMax::Unlimited, "\"unlimited\""),
        ] {
            assert_eq!(serde_json::to_string(&max).expect("plain data"), json);
            assert_eq!(
                serde_json::from_str::<SuspendedMax>(json).expect("it was just written"),
                max
            );
            assert_eq!(max.to_string().parse(), Ok(max));
        }
        assert_eq!(
            serde_json::from_str::<SuspendedMax>("null").expect("of old"),
            SuspendedMax::Unlimited
        );
        for wrong in ["-1", "4294967296", "\"many\""] {
            let error = serde_json::from_str::<SuspendedMax>(wrong)
                .expect_err(wrong)
                .to_string();
            assert!(
                error.contains("is neither a number of attempts nor \"unlimited\""),
                "{error}"
            );
        }
    }
}
