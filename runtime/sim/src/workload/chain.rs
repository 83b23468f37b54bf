//! Chains in workload files: jobs that are submitted one after another under one deadline.

use std::collections::BTreeMap;

use napreduce_engine::Span;
use serde::{Deserialize, Serialize};

use super::file::JobEntry;

/// A chain: each job is submitted when its predecessor succeeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChainEntry {
    /// Names of job entries, in order. The first entry determines the arrivals and the number of chains.
    pub jobs: Vec<String>,
    /// From the submission of the first job to the end of the last.
    #[serde(default, with = "napreduce_engine::time::text_or_never")]
    pub deadline: Option<Span>,
}

/// Returns, by index of the first entry of a chain, the indexes of its followers and the deadline. All names
/// must exist.
pub(super) fn followers(
    chains: &[ChainEntry],
    jobs: &[JobEntry],
) -> BTreeMap<usize, (Vec<usize>, Option<Span>)> {
    let place = |name: &String| jobs.iter().position(|job| job.name == *name);
    let each = |chain: &ChainEntry| {
        let mut places: Vec<usize> = chain.jobs.iter().filter_map(place).collect();
        let first = (!places.is_empty()).then(|| places.remove(0))?;
        Some((first, (places, chain.deadline)))
    };
    chains.iter().filter_map(each).collect()
}

/// Validates the chains. Returns the place and description of the first error.
pub(super) fn check(chains: &[ChainEntry], jobs: &[JobEntry]) -> Result<(), (String, String)> {
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, chain) in (1..).zip(chains) {
        let invalid = |error: String| Err((format!("chain {number}, jobs"), error));
        if chain.jobs.len() < 2 {
            return invalid(format!(
                "{} jobs; a chain needs at least 2",
                chain.jobs.len()
            ));
        }
        let mut first: Option<&JobEntry> = None;
        for name in &chain.jobs {
            let Some(job) = jobs.iter().find(|job| job.name == *name) else {
                return invalid(format!("unknown job {name:?}"));
            };
            if let Some(other) = taken.insert(name, number) {
                return invalid(format!(
                    "{name:?} is already in chain {other}; list each job once"
                ));
            }
            if job.deadline.is_some() {
                return invalid(format!(
                    "{name:?} has its own deadline; move it to the chain"
                ));
            }
            let Some(first) = first else {
                first = Some(job);
                continue;
            };
            if job.submit.is_some() || job.arrivals.is_some() {
                return invalid(format!(
                    "{name:?} follows {:?}; remove its submit and arrivals",
                    first.name
                ));
            }
            if job.repeat != first.repeat {
                let error = format!(
                    "{name:?} has repeat {}, but {:?} has {}; give both the same repeat",
                    job.repeat, first.name, first.repeat
                );
                return invalid(error);
            }
        }
    }
    Ok(())
}
