//! Workload files: jobs as people write them, in TOML.
//!
//! Owns the format (see `docs/workloads.md`), its checks, and the drawing of what is left to chance, by a
//! seed. Does not own opening a file: it is given the text. Traces have a format of their own (`swim`).

use std::collections::BTreeSet;
use std::sync::Arc;

use napreduce_engine::{Ratio, Span, Time};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::Workload;
use super::arrivals::{Arrivals, span};
use super::chain::{self, ChainEntry, followers};
use super::cluster::ClusterShape;
use super::distribution::Distribution;
use super::sizes::{Replicas, drawn};
use super::skew::Skew;
use crate::alone::alone;
use crate::job::{Followers, SimulatedJob, SimulatedMap, SimulatedReduce};
use crate::settings::{Overheads, ToldProgress};

/// The most tasks of one kind that a job has; no more are drawn.
pub(super) const TASKS_MAX: u32 = 1_000_000;
/// The most tasks that all jobs of a workload are expected to have.
pub(super) const ALL_TASKS_MAX: u64 = 20_000_000;
/// More copies of an input are refused.
const REPLICAS_MAX: u32 = 100;
/// More instances of one entry are refused.
const REPEAT_MAX: u32 = 10_000_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WorkloadFile {
    /// What it is, for people.
    #[serde(default)]
    pub about: String,
    /// Of everything left to chance, unless another one is asked for.
    #[serde(default)]
    pub seed: u64,
    /// The cluster it is meant for; a default for whoever runs it.
    #[serde(default)]
    pub cluster: Option<ClusterShape>,
    /// What takes time besides work there; a default, too.
    #[serde(default, deserialize_with = "crate::presets::read")]
    pub overheads: Overheads,
    /// What attempts tell of their progress; the truth, without.
    #[serde(default)]
    pub progress: ToldProgress,
    /// How many machines hold the input of a map, drawn for each from all that the cluster has; all
    /// alike, without.
    #[serde(default)]
    pub replicas: Option<u32>,
    /// How jobs without a time of their own come, in an order drawn by the seed.
    #[serde(default)]
    pub arrivals: Option<Arrivals>,
    #[serde(rename = "job", default)]
    pub jobs: Vec<JobEntry>,
    /// Which of them follow each other.
    #[serde(rename = "chain", default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<ChainEntry>,
}

/// One job, or several alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct JobEntry {
    /// Its name; of several alike, followed by their number.
    pub name: String,
    /// When it is submitted: a span from the start, or `trigger`. By the arrivals of the file without.
    #[serde(default)]
    pub submit: Option<String>,
    #[serde(default = "once")]
    pub repeat: u32,
    /// How several alike follow each other, from `submit` on.
    #[serde(default)]
    pub arrivals: Option<Arrivals>,
    #[serde(default = "default_user")]
    pub user: String,
    #[serde(default = "default_queue")]
    pub queue: String,
    /// The label of its results; the name without number if there is none.
    #[serde(default)]
    pub class: Option<String>,
    /// Higher is more important.
    #[serde(default)]
    pub priority: i32,
    /// How long after its submission it should be done.
    #[serde(default, with = "napreduce_engine::time::text_or_never")]
    pub deadline: Option<Span>,
    /// In the place of a deadline: how much more time than alone on the cluster of the file it has, as a
    /// share of that; drawn for each job.
    #[serde(default)]
    pub laxity: Option<Distribution>,
    /// The share of maps that must be done before reduces start.
    #[serde(default = "all")]
    pub slowstart: Ratio,
    /// How often a task may fail.
    #[serde(default = "four")]
    pub attempts_max: u32,
    /// Bytes of memory of a task.
    #[serde(default)]
    pub memory: u64,
    pub maps: MapsEntry,
    /// Its reduces, if it has any.
    #[serde(default)]
    pub reduces: Option<ReducesEntry>,
}

/// The maps of a job; each number is drawn anew: the count for each job, the rest for each task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MapsEntry {
    pub count: Distribution,
    /// How long each works.
    pub seconds: Distribution,
    /// Bytes each reads.
    #[serde(default = "nothing")]
    pub bytes: Distribution,
    /// Bytes each writes for the reduces.
    #[serde(default = "nothing")]
    pub output_bytes: Distribution,
}

/// The reduces of a job, drawn as maps are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReducesEntry {
    pub count: Distribution,
    /// How long each fetches map outputs.
    #[serde(default = "nothing")]
    pub shuffle_seconds: Distribution,
    /// How long each works on them.
    pub seconds: Distribution,
    /// How unequal their partitions are; all times are those of a reduce of the mean size, and grow
    /// with the bytes.
    #[serde(default)]
    pub skew: Option<Skew>,
}

fn once() -> u32 {
    1
}
fn four() -> u32 {
    4
}
fn all() -> Ratio {
    Ratio::ONE
}
fn nothing() -> Distribution {
    Distribution::Fixed(0.0)
}
fn default_user() -> String {
    "user".to_owned()
}
fn default_queue() -> String {
    "default".to_owned()
}

/// What is wrong with a workload file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    #[error("{file}: {error}")]
    Syntax { file: String, error: String },
    /// A value is out of bounds.
    #[error("{file}: {place}: {error}")]
    Value {
        file: String,
        place: String,
        /// What is wrong and what is allowed.
        error: String,
    },
}

impl WorkloadFile {
    /// Reads a workload file; `file` is what errors call it.
    ///
    /// # Errors
    /// Names the file, and the place and the value that is wrong.
    pub fn read(file: &str, text: &str) -> Result<WorkloadFile, WorkloadError> {
        let read: WorkloadFile = toml::from_str(text)
            .map_err(|error| WorkloadError::Syntax { file: file.to_owned(), error: error.to_string() })?;
        read.check().map_err(|(place, error)| WorkloadError::Value {
            file: file.to_owned(),
            place,
            error,
        })?;
        Ok(read)
    }

    /// Whether any job says how many bytes its maps write for its reduces, or none has reduces.
    pub fn tells_output_bytes(&self) -> bool {
        let mut with_reduces = self.jobs.iter().filter(|job| job.reduces.is_some()).peekable();
        let silent = |of: &Distribution| *of == Distribution::Fixed(0.0);
        with_reduces.peek().is_none() || with_reduces.any(|job| !silent(&job.maps.output_bytes))
    }

    /// The jobs, drawn by a seed. Tasks are made when their job is submitted.
    pub fn workload(&self, seed: u64) -> Workload {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut timed: Vec<(Time, usize, u32)> = Vec::new();
        let mut common: Vec<(usize, u32)> = Vec::new();
        let mut triggered = Vec::new();
        let chains = followers(&self.chains, &self.jobs);
        let follows: BTreeSet<usize> = chains.values().flat_map(|(later, _)| later.iter().copied()).collect();
        for (entry, job) in self.jobs.iter().enumerate().filter(|(entry, _)| !follows.contains(entry)) {
            let numbers = 1..=job.repeat;
            match &job.submit {
                Some(trigger) if trigger == "trigger" => {
                    triggered.push(self.chained(entry, 1, Time(0), seed))
                }
                None if self.arrivals.is_some() => common.extend(numbers.map(|number| (entry, number))),
                submit => {
                    let from =
                        submit.as_deref().and_then(|text| text.parse::<Span>().ok()).unwrap_or_default();
                    let together = Arrivals::Fixed(0.0);
                    let arrivals = job.arrivals.as_ref().unwrap_or(&together);
                    let times = arrivals.times(Time(0) + from, job.repeat as usize, &mut random);
                    timed.extend(times.into_iter().zip(numbers).map(|(at, number)| (at, entry, number)));
                }
            }
        }
        if let Some(arrivals) = &self.arrivals {
            common.shuffle(&mut random);
            let times = arrivals.times(Time(0), common.len(), &mut random);
            timed.extend(times.into_iter().zip(common).map(|(at, (entry, number))| (at, entry, number)));
        }
        timed.sort_unstable();
        let file = self.clone();
        let plans = timed.into_iter().map(move |(at, entry, number)| file.chained(entry, number, at, seed));
        triggered.into_iter().fold(Workload::stream(plans), Workload::with_triggered)
    }

    /// One job with those that follow it.
    fn chained(&self, entry: usize, number: u32, at: Time, seed: u64) -> SimulatedJob {
        let mut plan = self.plan(entry, number, at, seed);
        if let Some((later, deadline)) = followers(&self.chains, &self.jobs).remove(&entry) {
            let jobs = later.into_iter().map(|entry| self.plan(entry, number, at, seed)).collect();
            plan.is_chained = true;
            plan.followed_by = Some(Box::new(Followers { jobs, deadline }));
        }
        plan
    }

    /// One job with its tasks. What is drawn depends on the seed, the entry and the number alone.
    fn plan(&self, entry: usize, number: u32, at: Time, seed: u64) -> SimulatedJob {
        let job = &self.jobs[entry];
        let mut random = Pcg64::new(u128::from(seed), ((entry as u128) << 32) | u128::from(number));
        let name = if job.repeat == 1 { job.name.clone() } else { format!("{}-{number}", job.name) };
        let mut plan = SimulatedJob::new(name, at);
        plan.user = Arc::from(&*job.user);
        plan.queue = Arc::from(&*job.queue);
        plan.class = Arc::from(job.class.as_deref().unwrap_or(&job.name));
        plan.priority = job.priority;
        plan.deadline = job.deadline;
        plan.slowstart_permille = u32::try_from(job.slowstart.of(1000)).unwrap_or(1000);
        plan.attempts_max = job.attempts_max;
        plan.memory = job.memory;
        let maps = whole(job.maps.count.draw(&mut random).min(TASKS_MAX.into()));
        plan.maps = (0..maps)
            .map(|_| SimulatedMap {
                work: span(job.maps.seconds.draw(&mut random)),
                bytes: whole(job.maps.bytes.draw(&mut random)),
                output_bytes: whole(job.maps.output_bytes.draw(&mut random)),
                preferred: Vec::new(),
            })
            .collect();
        if let (Some(count), Some(ClusterShape { machines, racks, .. })) = (self.replicas, self.cluster) {
            // Of a stream of its own, so that everything else is the same without.
            let mut random =
                Pcg64::new(u128::from(seed), (1 << 100) | ((entry as u128) << 32) | u128::from(number));
            let replicas = Replicas { count, machines, racks, seed };
            plan.maps.iter_mut().for_each(|map| map.preferred = drawn(replicas, &mut random));
        }
        if let Some(reduces) = &job.reduces {
            let count = whole(reduces.count.draw(&mut random).min(TASKS_MAX.into()));
            let bytes = plan.maps.iter().fold(0_u64, |sum, task| sum.saturating_add(task.output_bytes));
            // Of a stream of its own, so that everything else is the same without.
            let mut of_skew =
                Pcg64::new(u128::from(seed), (1 << 102) | ((entry as u128) << 32) | u128::from(number));
            let sizes = reduces.skew.map(|skew| skew.sizes(count as usize, &mut of_skew));
            let each = |index: u64| {
                let size = sizes.as_ref().map_or(1.0, |sizes| sizes[index as usize]);
                SimulatedReduce {
                    shuffle: span(reduces.shuffle_seconds.draw(&mut random) * size),
                    reduce: span(reduces.seconds.draw(&mut random) * size),
                    bytes: if sizes.is_some() {
                        whole(bytes as f64 * size / count as f64)
                    } else {
                        bytes / count
                    },
                }
            };
            plan.reduces = (0..count).map(each).collect();
        }
        if let (Some(laxity), Some(cluster)) = (&job.laxity, self.cluster) {
            let mut random =
                Pcg64::new(u128::from(seed), (1 << 101) | ((entry as u128) << 32) | u128::from(number));
            let mut settings = cluster.settings(cluster.machines);
            settings.overheads = self.overheads;
            let alone = alone(&plan, &settings).0 as f64 / 1e6;
            plan.deadline = Some(span(alone * (1.0 + laxity.draw(&mut random))));
        }
        plan
    }

    /// Names the first value that is out of bounds, and what is allowed.
    fn check(&self) -> Result<(), (String, String)> {
        if let Some(arrivals) = &self.arrivals {
            arrivals.check().map_err(|error| ("arrivals".to_owned(), error))?;
        }
        if let Some(cluster) = &self.cluster {
            cluster.check().map_err(|(key, error)| (format!("cluster.{key}"), error))?;
        }
        self.progress.check().map_err(|error| ("progress".to_owned(), error))?;
        let bandwidth = self.overheads.machine_bandwidth;
        if bandwidth.is_some_and(|most| most.disk == Some(0) || most.network == Some(0)) {
            let error = "0 bytes a second move nothing; give more, or leave it out for no limit".to_owned();
            return Err(("overheads.machine-bandwidth".to_owned(), error));
        }
        let tasks = |job: &JobEntry| {
            let reduces = job.reduces.as_ref().map_or(0.0, |reduces| reduces.count.typical());
            let each = [job.maps.count.typical(), reduces].map(|count| count.min(TASKS_MAX.into()));
            f64::from(job.repeat) * each.iter().sum::<f64>().max(1.0)
        };
        let tasks: f64 = self.jobs.iter().map(tasks).sum();
        if tasks > ALL_TASKS_MAX as f64 {
            let error = format!("some {tasks:.0} tasks in all; give at most {ALL_TASKS_MAX}");
            return Err(("jobs".to_owned(), error));
        }
        if let Some(wrong) = self.replicas.filter(|replicas| !(1..=REPLICAS_MAX).contains(replicas)) {
            return Err(("replicas".to_owned(), format!("{wrong}; give 1 to {REPLICAS_MAX}")));
        }
        let mut names = BTreeSet::new();
        for job in &self.jobs {
            job.check().map_err(|(field, error)| (format!("job {:?}, {field}", job.name), error))?;
            if job.laxity.is_some() && self.cluster.is_none() {
                let error = "it is a share of the time alone on a cluster; give a cluster".to_owned();
                return Err((format!("job {:?}, laxity", job.name), error));
            }
            if !names.insert(&job.name) {
                let error = "there are two of that name; give each its own, or use repeat".to_owned();
                return Err((format!("job {:?}", job.name), error));
            }
        }
        chain::check(&self.chains, &self.jobs)
    }
}

impl JobEntry {
    fn check(&self) -> Result<(), (&'static str, String)> {
        let wrong = |field: &'static str| move |error: String| (field, error);
        if let Some(submit) = self.submit.as_deref().filter(|submit| *submit != "trigger") {
            let parsed = submit.parse::<Span>();
            parsed.map_err(|error| ("submit", format!("{error}, or \"trigger\"")))?;
        }
        if self.submit.as_deref() == Some("trigger") && self.repeat != 1 {
            return Err(("repeat", "a job that is submitted by a trigger comes once".to_owned()));
        }
        if self.repeat > REPEAT_MAX {
            return Err(("repeat", format!("{}; give at most {REPEAT_MAX}", self.repeat)));
        }
        if self.slowstart > Ratio::ONE || self.slowstart < Ratio::ZERO {
            return Err(("slowstart", format!("{}; give a share from 0 to 1", self.slowstart)));
        }
        if self.attempts_max == 0 {
            return Err(("attempts-max", "0; a task needs at least 1 attempt".to_owned()));
        }
        self.arrivals.as_ref().map_or(Ok(()), Arrivals::check).map_err(wrong("arrivals"))?;
        if self.laxity.is_some() && self.deadline.is_some() {
            return Err(("laxity", "a job has one deadline; give deadline or laxity".to_owned()));
        }
        self.laxity.as_ref().map_or(Ok(()), Distribution::check).map_err(wrong("laxity"))?;
        count(&self.maps.count).map_err(wrong("maps.count"))?;
        self.maps.seconds.check().map_err(wrong("maps.seconds"))?;
        self.maps.bytes.check().map_err(wrong("maps.bytes"))?;
        self.maps.output_bytes.check().map_err(wrong("maps.output-bytes"))?;
        if let Some(reduces) = &self.reduces {
            count(&reduces.count).map_err(wrong("reduces.count"))?;
            reduces.shuffle_seconds.check().map_err(wrong("reduces.shuffle-seconds"))?;
            reduces.seconds.check().map_err(wrong("reduces.seconds"))?;
            reduces.skew.map_or(Ok(()), Skew::check).map_err(wrong("reduces.skew"))?;
        }
        Ok(())
    }
}

fn count(of: &Distribution) -> Result<(), String> {
    of.check()?;
    match of {
        Distribution::Fixed(number) if *number > f64::from(TASKS_MAX) => {
            Err(format!("{number} tasks; give at most {TASKS_MAX}"))
        }
        _ => Ok(()),
    }
}

/// The nearest whole number, within what a job may have of anything.
fn whole(number: f64) -> u64 {
    number.round() as u64
}
