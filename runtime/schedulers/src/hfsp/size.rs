//! How large a phase is: before anything of it ran, from a sample of its maps, and from a sample of its
//! reduces.
//!
//! Owns the formulas, exact and in any unit of time. Does not own when which of them is used: that is the
//! training's.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use napreduce_engine::Ratio;

/// How much the size of a phase counts before any of it was measured: a factor of at least 1, or infinity,
/// with which a job gets nothing but the slots of its sample until that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    /// The estimate from other jobs counts so many times.
    Factor(Ratio),
    /// An unmeasured job is endless.
    Infinite,
}

/// The size of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// All of its tasks after one another take so long.
    Finite(Ratio),
    /// Larger than any other.
    Infinite,
}

/// A text that is no confidence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no confidence; give a factor of at least 1, or \"infinity\"")]
pub struct ConfidenceError(pub String);

/// The size of a phase that nothing is known of: its tasks take as long as those of other jobs did lately, or
/// so long as is assumed without any, times the confidence.
pub fn initial(tasks: u32, recent_mean: Option<Ratio>, assumed: Ratio, confidence: Confidence) -> Size {
    let all = Ratio::whole(u64::from(tasks)) * recent_mean.unwrap_or(assumed);
    match confidence {
        Confidence::Factor(factor) => Size::Finite(all * factor),
        Confidence::Infinite => Size::Infinite,
    }
}

/// The times of a sample of tasks, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    total: Ratio,
    count: u32,
}

impl Sample {
    /// Nothing yet.
    pub const EMPTY: Sample = Sample { total: Ratio::ZERO, count: 0 };

    /// So many tasks that took so long together.
    pub fn of(total: Ratio, count: u32) -> Sample {
        Sample { total, count }
    }

    /// A task took so long, or will.
    pub fn add(&mut self, time: Ratio) {
        self.total = self.total + time;
        self.count += 1;
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    /// Their mean; unknown of none.
    pub fn mean(&self) -> Option<Ratio> {
        (self.count > 0).then(|| self.total / Ratio::whole(u64::from(self.count)))
    }

    /// The estimate of first order: so many tasks, each of the mean, without the work already done of them.
    pub fn size_of(&self, tasks: u32, worked: Ratio) -> Option<Ratio> {
        let size = self.mean()? * Ratio::whole(u64::from(tasks)) - worked;
        Some(size.max(Ratio::ZERO))
    }
}

impl FromIterator<Ratio> for Sample {
    fn from_iter<I: IntoIterator<Item = Ratio>>(times: I) -> Sample {
        let mut sample = Sample::EMPTY;
        times.into_iter().for_each(|time| sample.add(time));
        sample
    }
}

/// How long a reduce will execute that made this progress in so long; unknown while it made none.
pub fn reduce_time(executed: Ratio, progress: Ratio) -> Option<Ratio> {
    (progress > Ratio::ZERO).then(|| executed / progress)
}

impl FromStr for Confidence {
    type Err = ConfidenceError;

    fn from_str(text: &str) -> Result<Confidence, ConfidenceError> {
        if text == "infinity" {
            return Ok(Confidence::Infinite);
        }
        let factor = text.parse::<Ratio>().ok().filter(|factor| *factor >= Ratio::ONE);
        factor.map(Confidence::Factor).ok_or_else(|| ConfidenceError(text.to_owned()))
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Confidence::Factor(factor) => factor.fmt(f),
            Confidence::Infinite => f.write_str("infinity"),
        }
    }
}

impl Serialize for Confidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Confidence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Confidence, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(Ratio),
            Text(String),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Number(number) => number.to_string(),
            Written::Text(text) => text,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confidence_is_a_factor_of_at_least_one_or_infinity() {
        assert_eq!("1".parse(), Ok(Confidence::Factor(Ratio::ONE)));
        assert_eq!("2.5".parse(), Ok(Confidence::Factor(Ratio::new(5, 2))));
        assert_eq!("infinity".parse(), Ok(Confidence::Infinite));
        for wrong in ["0.9", "-1", "much", "inf", ""] {
            assert_eq!(wrong.parse::<Confidence>(), Err(ConfidenceError(wrong.to_owned())));
        }
    }

    #[test]
    fn confidences_are_read_from_numbers_and_texts() {
        let all: Vec<Confidence> = serde_json::from_str(r#"[1, 2.5, "3/2", "infinity"]"#).expect("four");
        let factor = |above, below| Confidence::Factor(Ratio::new(above, below));
        assert_eq!(all, [factor(1, 1), factor(5, 2), factor(3, 2), Confidence::Infinite]);
        let again = serde_json::to_string(&all).expect("text");
        assert_eq!(serde_json::from_str::<Vec<Confidence>>(&again).expect("the same"), all);
    }

    #[test]
    fn without_a_sample_or_progress_nothing_is_known() {
        assert_eq!(Sample::EMPTY.size_of(3, Ratio::ZERO), None);
        assert_eq!(reduce_time(Ratio::whole(60), Ratio::ZERO), None);
    }
}
