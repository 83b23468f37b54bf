//! The size of a phase: estimated before it runs, from sampled maps, or from sampled reduces. Exact formulas
//! in any unit of time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use napreduce_engine::Ratio;

/// The confidence in the initial size estimate: a factor of at least 1, or infinity. With infinity an
/// unmeasured job gets slots for its sample only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    /// Multiplies the initial estimate.
    Factor(Ratio),
    /// An unmeasured job has infinite size.
    Infinite,
}

/// The size of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// Total time of its tasks in sequence.
    Finite(Ratio),
    /// Larger than any finite size.
    Infinite,
}

/// An invalid confidence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid confidence {0:?}; give a factor of at least 1, or \"infinity\"")]
pub struct ConfidenceError(pub String);

/// Returns the initial size of a phase: the mean of recent task times, or `assumed` without any, times the
/// number of tasks and the confidence.
pub fn initial(
    tasks: u32,
    recent_mean: Option<Ratio>,
    assumed: Ratio,
    confidence: Confidence,
) -> Size {
    let all = Ratio::whole(u64::from(tasks)) * recent_mean.unwrap_or(assumed);
    match confidence {
        Confidence::Factor(factor) => Size::Finite(all * factor),
        Confidence::Infinite => Size::Infinite,
    }
}

/// A sample of task times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    total: Ratio,
    count: u32,
}

impl Sample {
    pub const EMPTY: Sample = Sample {
        total: Ratio::ZERO,
        count: 0,
    };

    /// Creates a sample of `count` tasks with total time `total`.
    pub fn new(total: Ratio, count: u32) -> Sample {
        Sample { total, count }
    }

    /// Adds the measured or estimated time of a task.
    pub fn add(&mut self, time: Ratio) {
        self.total = self.total + time;
        self.count += 1;
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the mean; `None` if empty.
    pub fn mean(&self) -> Option<Ratio> {
        (self.count > 0).then(|| self.total / Ratio::whole(u64::from(self.count)))
    }

    /// Returns the first-order estimate: the mean times `tasks`, minus the work done.
    pub fn size_of(&self, tasks: u32, worked: Ratio) -> Option<Ratio> {
        let size = self.mean()? * Ratio::whole(u64::from(tasks)) - worked;
        Some(size.max(Ratio::ZERO))
    }
}

impl FromIterator<Ratio> for Sample {
    fn from_iter<I: IntoIterator<Item = Ratio>>(times: I) -> Sample {
        let mut sample = Sample::EMPTY;
        for time in times {
            sample.add(time);
        }
        sample
    }
}

/// Returns the estimated total time of a reduce from its progress; `None` without progress.
pub fn reduce_time(executed: Ratio, progress: Ratio) -> Option<Ratio> {
    (progress > Ratio::ZERO).then(|| executed / progress)
}

impl FromStr for Confidence {
    type Err = ConfidenceError;

    fn from_str(text: &str) -> Result<Confidence, ConfidenceError> {
        if text == "infinity" {
            return Ok(Confidence::Infinite);
        }
        let factor = text
            .parse::<Ratio>()
            .ok()
            .filter(|factor| *factor >= Ratio::ONE);
        factor
            .map(Confidence::Factor)
            .ok_or_else(|| ConfidenceError(text.to_owned()))
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
    fn confidence_accepts_factor_or_infinity() {
        assert_eq!("1".parse(), Ok(Confidence::Factor(Ratio::ONE)));
        assert_eq!("2.5".parse(), Ok(Confidence::Factor(Ratio::new(5, 2))));
        assert_eq!("infinity".parse(), Ok(Confidence::Infinite));
        for wrong in ["0.9", "-1", "much", "inf", ""] {
            assert_eq!(
                wrong.parse::<Confidence>(),
                Err(ConfidenceError(wrong.to_owned()))
            );
        }
    }

    #[test]
    fn confidence_deserializes_from_number_or_text() {
        let all: Vec<Confidence> =
            serde_json::from_str(r#"[1, 2.5, "3/2", "infinity"]"#).expect("four");
        let factor = |above, below| Confidence::Factor(Ratio::new(above, below));
        assert_eq!(
            all,
            [
                factor(1, 1),
                factor(5, 2),
                factor(3, 2),
                Confidence::Infinite
            ]
        );
        let again = serde_json::to_string(&all).expect("text");
        assert_eq!(
            serde_json::from_str::<Vec<Confidence>>(&again).expect("the same"),
            all
        );
    }

    #[test]
    fn empty_sample_has_no_estimate() {
        assert_eq!(Sample::EMPTY.size_of(3, Ratio::ZERO), None);
        assert_eq!(reduce_time(Ratio::whole(60), Ratio::ZERO), None);
    }
}
