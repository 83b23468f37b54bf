//! Chains in workload files: jobs that follow each other, with one deadline.
//!
//! Owns the entry and its checks. Does not own the jobs (`file`) nor when the next one comes (the
//! simulation).

use std::collections::BTreeMap;

use napreduce_engine::Span;
use serde::{Deserialize, Serialize};

use super::file::JobEntry;

/// Jobs of which each is submitted when the one before it has ended well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChainEntry {
    /// The names of the entries, in order. The first one says when the chain comes and how often.
    pub jobs: Vec<String>,
    /// How long after the submission of the first the last should be done.
    #[serde(default, with = "napreduce_engine::time::text_or_never")]
    pub deadline: Option<Span>,
}

/// Which entries follow which: by the place of the first, those of the others and the deadline. All
/// names are known.
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

/// Names the first chain that makes no sense, and what is allowed.
pub(super) fn check(chains: &[ChainEntry], jobs: &[JobEntry]) -> Result<(), (String, String)> {
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, chain) in (1..).zip(chains) {
        let wrong = |error: String| Err((format!("chain {number}, jobs"), error));
        if chain.jobs.len() < 2 {
            return wrong(format!("{} jobs; a chain has at least 2", chain.jobs.len()));
        }
        let mut first: Option<&JobEntry> = None;
        for name in &chain.jobs {
            let Some(job) = jobs.iter().find(|job| job.name == *name) else {
                return wrong(format!("there is no job {name:?}"));
            };
            if let Some(other) = taken.insert(name, number) {
                return wrong(format!("{name:?} is in chain {other} already; each job has one place"));
            }
            if job.deadline.is_some() {
                return wrong(format!("{name:?} has a deadline of its own; give it to the chain"));
            }
            let Some(first) = first else {
                first = Some(job);
                continue;
            };
            if job.submit.is_some() || job.arrivals.is_some() {
                return wrong(format!(
                    "{name:?} comes after {:?}; leave out its submit and arrivals",
                    first.name
                ));
            }
            if job.repeat != first.repeat {
                let error = format!(
                    "{name:?} comes {} times, but {:?} {}; give both the same repeat",
                    job.repeat, first.name, first.repeat
                );
                return wrong(error);
            }
        }
    }
    Ok(())
}
