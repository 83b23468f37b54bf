//! Quantities of a block, written as `kill: mean sojourn of research-xl`.

use anyhow::Result;
use std::fmt;

use napreduce_engine::listed;
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Quantity {
    text: String,
    pub(super) runs: RunSelection,
    pub(super) subject: Subject,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunSelection {
    Of(VariantName),
    /// The difference of the same jobs, first minus second.
    Difference(VariantName, VariantName),
}

/// A variant of the figure's campaign, or of a named one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VariantName {
    pub(super) campaign: Option<String>,
    pub(super) variant: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subject {
    Run(RunMeasure),
    Jobs {
        statistic: Statistic,
        measure: JobMeasure,
        /// Only those of this class, or of this name.
        of: Option<String>,
    },
}

listed! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum RunMeasure {
        Makespan = "makespan",
        Missed = "missed",
        Met = "met",
        LocalShare = "local-share",
        Events = "events",
        PagedOut = "paged-out",
    }
}

impl RunMeasure {
    pub(super) fn is_live(self) -> bool {
        matches!(
            self,
            RunMeasure::Makespan | RunMeasure::Missed | RunMeasure::Met
        )
    }
}

listed! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum JobMeasure {
        Sojourn = "sojourn",
        Slowdown = "slowdown",
        Alone = "alone",
        ReduceWait = "reduce-wait",
        IdleShare = "idle-share",
        Preemptions = "preemptions",
        Wasted = "wasted",
        Margin = "margin",
        Started = "started",
        Ended = "ended",
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Statistic {
    Mean,
    Median,
    Max,
    Min,
    Sum,
    /// The percentile, 0 to 100.
    Percentile(f64),
    /// The share of jobs with at least this value.
    AtLeast(f64),
    /// The share of jobs with at most this value.
    AtMost(f64),
}

impl TryFrom<String> for Quantity {
    type Error = String;

    fn try_from(text: String) -> Result<Quantity, String> {
        read(&text).map_err(|what| {
            format!("{text:?}: {what}; write for example \"kill: mean sojourn of research\"")
        })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Quantity {
    /// Whether live runs have it.
    pub(super) fn is_live(&self) -> bool {
        match &self.subject {
            Subject::Run(measure) => measure.is_live(),
            Subject::Jobs { .. } => true,
        }
    }

    pub(super) fn variants(&self) -> Vec<&VariantName> {
        match &self.runs {
            RunSelection::Of(one) => vec![one],
            RunSelection::Difference(first, second) => vec![first, second],
        }
    }
}

fn read(text: &str) -> Result<Quantity, String> {
    let (runs, subject) = text.split_once(": ").ok_or("no `: ` after the variant")?;
    let runs = match runs.split_once(" - ") {
        Some((first, second)) => RunSelection::Difference(variant(first)?, variant(second)?),
        None => RunSelection::Of(variant(runs)?),
    };
    let (subject, of) = match subject.split_once(" of ") {
        Some((subject, of)) => (subject, Some(of.trim().to_owned())),
        None => (subject, None),
    };
    let words: Vec<&str> = subject.split_whitespace().collect();
    let subject = match (words.as_slice(), &runs) {
        ([word], RunSelection::Of(_)) if of.is_none() => {
            let measure = RunMeasure::of_word(word);
            Subject::Run(measure.ok_or_else(|| format!("{word:?} is not a measure of a run"))?)
        }
        ([statistic, word], _) => {
            let statistic = self::statistic(statistic)?;
            let measure = JobMeasure::of_word(word);
            let measure = measure.ok_or_else(|| format!("{word:?} is not a measure of a job"))?;
            Subject::Jobs {
                statistic,
                measure,
                of,
            }
        }
        _ => {
            return Err("expected a statistic and a measure, or a measure of the whole run".into());
        }
    };
    Ok(Quantity {
        text: text.to_owned(),
        runs,
        subject,
    })
}

fn variant(text: &str) -> Result<VariantName, String> {
    let text = text.trim();
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    match text.split_once('/') {
        Some((campaign, variant)) if is_name(campaign) && is_name(variant) => Ok(VariantName {
            campaign: Some(campaign.to_owned()),
            variant: variant.to_owned(),
        }),
        None if is_name(text) => Ok(VariantName {
            campaign: None,
            variant: text.to_owned(),
        }),
        _ => Err(format!("{text:?} is not a variant")),
    }
}

fn statistic(word: &str) -> Result<Statistic, String> {
    let unknown = || format!("{word:?} is not a statistic");
    let number = |text: &str| {
        text.parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .ok_or_else(unknown)
    };
    Ok(match word {
        "mean" => Statistic::Mean,
        "median" => Statistic::Median,
        "max" => Statistic::Max,
        "min" => Statistic::Min,
        "sum" => Statistic::Sum,
        _ => {
            let share = word
                .strip_prefix("share(")
                .and_then(|rest| rest.strip_suffix(')'));
            if let Some(least) = share.and_then(|bound| bound.strip_prefix(">=")) {
                return number(least).map(Statistic::AtLeast);
            }
            if let Some(most) = share.and_then(|bound| bound.strip_prefix("<=")) {
                return number(most).map(Statistic::AtMost);
            }
            let percent = word
                .strip_prefix('p')
                .ok_or_else(unknown)
                .and_then(number)?;
            if !(0.0..=100.0).contains(&percent) {
                return Err(unknown());
            }
            Statistic::Percentile(percent)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_parsed() {
        let read = |text: &str| Quantity::try_from(text.to_owned()).expect("a valid quantity");
        let quantity = read("l-s/natjam - kill: share(<=-5) sojourn of production");
        let name = |campaign: Option<&str>, variant: &str| VariantName {
            campaign: campaign.map(str::to_owned),
            variant: variant.to_owned(),
        };
        assert_eq!(
            quantity.runs,
            RunSelection::Difference(name(Some("l-s"), "natjam"), name(None, "kill"))
        );
        let statistic = Statistic::AtMost(-5.0);
        let of = Some("production".to_owned());
        assert_eq!(
            quantity.subject,
            Subject::Jobs {
                statistic,
                measure: JobMeasure::Sojourn,
                of
            }
        );
        assert_eq!(quantity.variants().len(), 2);
        let makespan = read("mdf: makespan");
        assert_eq!(
            (makespan.runs, makespan.subject),
            (
                RunSelection::Of(name(None, "mdf")),
                Subject::Run(RunMeasure::Makespan)
            )
        );
        let p95 = read("mdf: p95 margin");
        assert!(matches!(
            p95.subject,
            Subject::Jobs {
                statistic: Statistic::Percentile(95.0),
                of: None,
                ..
            }
        ));
    }

    #[test]
    fn parse_errors_quote_the_text() {
        for (text, what) in [
            ("mean sojourn", "no `: `"),
            ("a b: makespan", "not a variant"),
            ("a: length", "not a measure of a run"),
            ("a: mean length", "not a measure of a job"),
            ("a: mode sojourn", "not a statistic"),
            ("a: p101 sojourn", "not a statistic"),
            ("a: share(=3) sojourn", "not a statistic"),
            ("a: share(>=much) sojourn", "not a statistic"),
            ("a - b: makespan", "a statistic and a measure"),
            ("a: makespan of b", "a statistic and a measure"),
        ] {
            let error = Quantity::try_from(text.to_owned()).expect_err(text);
            assert!(error.contains(what) && error.contains(text), "{error}");
        }
    }
}
