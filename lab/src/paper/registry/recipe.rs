//! How a campaign runs live: how much smaller, and what of it.
//!
//! Owns the form, and what becomes of jobs and cluster. Does not own the runs (`paper::live`).

use std::collections::BTreeMap;

use napreduce_engine::{Slots, Time};
use napreduce_sim::{ClusterShape, SimulatedJob};
use serde::Deserialize;

use crate::replay::Scale;

/// How a campaign runs live.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LiveRecipe {
    /// Times are divided by it.
    pub time_scale: f64,
    /// Numbers of tasks, slots and bytes are.
    #[serde(default = "one")]
    pub task_scale: f64,
    /// For the machines of the campaign; fewer for a variant with fewer.
    pub workers: Option<u32>,
    /// Of each worker; the campaign's divided, without, and of containers a third for maps.
    pub slots: Option<Slots>,
    /// Only these variants; all of them without.
    #[serde(default)]
    pub variants: Vec<String>,
    /// One of so many jobs of each class, all of them closer by as much, so that the cluster is as busy.
    #[serde(default = "one_of_one")]
    pub one_of: u32,
}

fn one() -> f64 {
    1.0
}
fn one_of_one() -> u32 {
    1
}

impl LiveRecipe {
    pub(in crate::paper) fn scale(&self) -> Result<Scale, String> {
        Scale::new(self.time_scale, self.task_scale).map_err(|error| error.to_string())
    }

    /// Whether a variant runs.
    pub(in crate::paper) fn has(&self, variant: &str) -> bool {
        self.variants.is_empty() || self.variants.iter().any(|name| name == variant)
    }

    /// The jobs that run, at their own scale.
    pub(in crate::paper) fn jobs(&self, jobs: Vec<SimulatedJob>) -> Vec<SimulatedJob> {
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        let mut kept = Vec::new();
        for mut job in jobs {
            let number = seen.entry(job.class.to_string()).or_default();
            if number.is_multiple_of(self.one_of.max(1)) {
                job.submit = Time(job.submit.0 / u64::from(self.one_of.max(1)));
                kept.push(job);
            }
            *number += 1;
        }
        kept
    }

    /// The cluster of so many machines, where the campaign has `usual`.
    pub(in crate::paper) fn cluster(&self, shape: ClusterShape, usual: u32) -> Result<ClusterShape, String> {
        let share = f64::from(shape.machines) / f64::from(usual.max(1));
        let workers = self.workers.map(|workers| ((f64::from(workers) * share).round() as u32).max(1));
        let scaled = self.scale()?.cluster(shape, workers);
        Ok(self
            .slots
            .map_or(scaled, |slots| ClusterShape::of_slots(scaled.machines, slots.map, slots.reduce)))
    }

    /// What is wrong with it.
    pub(in crate::paper) fn check(&self, variants: &BTreeMap<String, super::Variant>) -> Result<(), String> {
        self.scale()?;
        if self.one_of == 0 || self.workers == Some(0) {
            return Err("live: one-of and workers are at least 1".to_owned());
        }
        match self.variants.iter().find(|name| !variants.contains_key(*name)) {
            Some(name) => Err(format!("live: there is no variant {name:?}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use napreduce_engine::Span;

    fn recipe(text: &str) -> LiveRecipe {
        toml::from_str(text).expect("a recipe")
    }

    #[test]
    fn one_job_of_three_comes_three_times_as_fast() {
        let job = |class: &str, number: u64| {
            let mut job =
                SimulatedJob::new(format!("{class}-{number}"), Time(number * 30)).with_maps(1, Span(1));
            job.class = class.into();
            job
        };
        let jobs: Vec<_> = (0..4).map(|number| job("a", number)).chain([job("b", 9)]).collect();
        let kept = recipe("time-scale = 2\none-of = 3").jobs(jobs);
        let found: Vec<_> = kept.iter().map(|job| (&*job.name, job.submit.0)).collect();
        assert_eq!(found, [("a-0", 0), ("a-3", 30), ("b-9", 90)]);
    }

    #[test]
    fn a_variant_of_fewer_machines_has_fewer_workers() {
        let recipe = recipe("time-scale = 300\ntask-scale = 10\nworkers = 5");
        let shape = ClusterShape::of_slots;
        assert_eq!(recipe.cluster(shape(100, 4, 2), 100), Ok(shape(5, 8, 4)));
        assert_eq!(recipe.cluster(shape(20, 4, 2), 100), Ok(shape(1, 8, 4)));
        assert!(recipe.has("any"));
    }

    #[test]
    fn containers_may_become_any_slots_of_two_kinds() {
        let containers = ClusterShape { containers: Some(8), ..ClusterShape::of_slots(6, 0, 0) };
        let of = |text: &str| recipe(text).cluster(containers, 6).expect("a cluster");
        assert_eq!(of("time-scale = 20\nworkers = 2"), ClusterShape::of_slots(2, 6, 18));
        let slots = "slots = { map = 6, reduce = 24 }";
        assert_eq!(of(&format!("time-scale = 20\nworkers = 2\n{slots}")), ClusterShape::of_slots(2, 6, 24));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let none = BTreeMap::new();
        let check = |text: &str| recipe(text).check(&none);
        assert_eq!(check("time-scale = 2"), Ok(()));
        assert!(check("time-scale = 0").expect_err("no scale").contains("--time-scale"));
        assert!(check("time-scale = 2\nvariants = [\"x\"]").expect_err("no variant").contains("\"x\""));
        assert!(check("time-scale = 2\none-of = 0").expect_err("no job").contains("at least 1"));
    }
}
