//! Owns how far live runs and simulated ones of the same plans agree: the ratio of mean sojourns, of all jobs
//! and by class. That is what entitles a simulation to speak for a scale at which nothing runs live.

use std::collections::BTreeMap;

use napreduce_sim::Run;
use serde::Serialize;

use super::bench::LiveRun;

/// Live over simulated means that agree.
const BAND: [f64; 2] = [0.9, 1.1];

/// Of one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Agreement {
    pub all: MeanRatio,
    /// By class, when there is more than one.
    pub classes: BTreeMap<String, MeanRatio>,
    /// Whether the ratio of all is from 0.9 to 1.1.
    pub agrees: bool,
}

/// Mean sojourns in seconds, and their ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanRatio {
    pub jobs: usize,
    pub live: f64,
    pub simulated: f64,
    pub ratio: f64,
}

impl MeanRatio {
    fn of(pairs: &[(f64, f64)]) -> MeanRatio {
        let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len().max(1) as f64;
        let (live, simulated) = (mean(|pair| pair.0), mean(|pair| pair.1));
        MeanRatio { jobs: pairs.len(), live, simulated, ratio: live / simulated }
    }

    fn agrees(self) -> bool {
        (BAND[0]..=BAND[1]).contains(&self.ratio)
    }
}

impl Agreement {
    /// Of runs and their simulations; none without jobs in both.
    pub fn of(runs: &[(&LiveRun, &Run)]) -> Option<Agreement> {
        let mut pairs: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for (live, simulated) in runs {
            for job in &live.jobs {
                let Some(other) = simulated.job(&job.job.name) else { continue };
                let sojourn = job.ended.saturating_sub(job.submitted) as f64 / 1e6;
                let pair = (sojourn, other.sojourn().0 as f64 / 1e6);
                pairs.entry(job.job.class.to_string()).or_default().push(pair);
            }
        }
        Agreement::of_pairs(&pairs)
    }

    /// Of live and simulated sojourns by class, in seconds.
    pub(crate) fn of_pairs(pairs: &BTreeMap<String, Vec<(f64, f64)>>) -> Option<Agreement> {
        let every: Vec<(f64, f64)> = pairs.values().flatten().copied().collect();
        if every.is_empty() {
            return None;
        }
        let all = MeanRatio::of(&every);
        let mut classes: BTreeMap<String, MeanRatio> =
            pairs.iter().map(|(class, pairs)| (class.clone(), MeanRatio::of(pairs))).collect();
        if classes.len() == 1 {
            classes.clear();
        }
        Some(Agreement { all, classes, agrees: all.agrees() })
    }

    /// In a sentence: the ratio and, where it is outside, by which classes.
    pub fn line(&self) -> String {
        let MeanRatio { live, simulated, ratio, .. } = self.all;
        let head = format!("live {live:.3} s, simulated {simulated:.3} s, ratio {ratio:.3}");
        let [least, most] = BAND;
        let beyond = self.classes.iter().filter(|(_, of_it)| !of_it.agrees());
        let beyond: Vec<String> =
            beyond.map(|(class, of_it)| format!("{class} {:.3}", of_it.ratio)).collect();
        match (self.agrees, beyond.is_empty()) {
            (true, true) => format!("{head}: they agree ({least} to {most})"),
            (true, false) => {
                format!("{head}: they agree ({least} to {most}), but not in {}", beyond.join(", "))
            }
            (false, true) => format!("{head}: OUTSIDE {least} to {most}"),
            (false, false) => format!("{head}: OUTSIDE {least} to {most}, in {}", beyond.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreement(pairs: &[(&str, f64, f64)]) -> Agreement {
        let mut by_class: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for (class, live, simulated) in pairs {
            by_class.entry((*class).to_owned()).or_default().push((*live, *simulated));
        }
        Agreement::of_pairs(&by_class).unwrap()
    }

    #[test]
    fn the_ratio_is_that_of_the_means() {
        let found = agreement(&[("a", 1.0, 2.0), ("a", 5.0, 4.0)]);
        assert_eq!((found.all.live, found.all.simulated, found.all.ratio), (3.0, 3.0, 1.0));
        assert!(
            found.agrees && found.classes.is_empty() && found.line().ends_with("they agree (0.9 to 1.1)")
        );
    }

    #[test]
    fn a_class_that_disagrees_is_named_and_so_is_the_whole() {
        let found = agreement(&[("small", 1.5, 1.0), ("large", 100.0, 100.0)]);
        assert!(found.agrees && found.line().ends_with("but not in small 1.500"), "{}", found.line());
        let found = agreement(&[("small", 1.0, 1.0), ("large", 150.0, 100.0)]);
        assert!(found.line().ends_with("OUTSIDE 0.9 to 1.1, in large 1.500"), "{}", found.line());
        assert!(!agreement(&[("all", 0.5, 1.0)]).agrees);
    }

    #[test]
    fn nothing_agrees_with_nothing() {
        assert_eq!(Agreement::of(&[]), None);
    }
}
