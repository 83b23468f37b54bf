//! Workload files in TOML (see `docs/simulator.md`): format, validation, and the random draws.

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
use super::sizes::{Replicas, draw_replicas};
use super::skew::Skew;
use crate::alone::alone;
use crate::job::{Followers, SimulatedJob, SimulatedMap, SimulatedReduce};
use crate::settings::{Overheads, ProgressModel};

/// Maximum tasks of one kind per job; draws are capped here.
pub(super) const TASKS_MAX: u32 = 1_000_000;
/// Maximum expected tasks of a workload.
pub(super) const ALL_TASKS_MAX: u64 = 20_000_000;
/// Maximum replicas of an input.
const REPLICAS_MAX: u32 = 100;
/// Maximum repeats of an entry.
const REPEAT_MAX: u32 = 10_000_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WorkloadFile {
    /// A description for people.
    #[serde(default)]
    pub about: String,
    /// The default seed.
    #[serde(default)]
    pub seed: u64,
    /// The default cluster.
    #[serde(default)]
    pub cluster: Option<ClusterShape>,
    /// The default overheads.
    #[serde(default, deserialize_with = "crate::presets::read")]
    pub overheads: Overheads,
    /// How reported progress differs from actual progress.
    #[serde(default)]
    pub progress: ProgressModel,
    /// Number of machines that hold the input of a map, drawn for each map. By default every machine is
    /// equal.
    #[serde(default)]
    pub replicas: Option<u32>,
    /// The arrivals of jobs without their own submit time, in random order.
    #[serde(default)]
    pub arrivals: Option<Arrivals>,
    #[serde(rename = "job", default)]
    pub jobs: Vec<JobEntry>,
    #[serde(rename = "chain", default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<ChainEntry>,
}

/// A job, or several equal ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct JobEntry {
    /// With `repeat`, followed by a number.
    pub name: String,
    /// A span from the start, or `trigger`. By default the arrivals of the file apply.
    #[serde(default)]
    pub submit: Option<String>,
    #[serde(default = "once")]
    pub repeat: u32,
    /// The arrivals of repeated jobs, from `submit` on.
    #[serde(default)]
    pub arrivals: Option<Arrivals>,
    #[serde(default = "default_user")]
    pub user: String,
    #[serde(default = "default_queue")]
    pub queue: String,
    /// The label of its results; `name` by default.
    #[serde(default)]
    pub class: Option<String>,
    /// Higher is more important.
    #[serde(default)]
    pub priority: i32,
    /// Relative to its submission.
    #[serde(default, with = "napreduce_engine::time::text_or_never")]
    pub deadline: Option<Span>,
    /// Sets the deadline relative to the run time alone on the file's cluster: the additional time as a
    /// fraction of it, drawn for each job.
    #[serde(default)]
    pub laxity: Option<Distribution>,
    /// Fraction of maps that must be done before reduces start.
    #[serde(default = "all")]
    pub slowstart: Ratio,
    /// Attempts per task until the job fails.
    #[serde(default = "default_attempts")]
    pub attempts_max: u32,
    /// Memory of a task in bytes.
    #[serde(default)]
    pub memory: u64,
    pub maps: MapsEntry,
    #[serde(default)]
    pub reduces: Option<ReducesEntry>,
}

/// The maps of a job. The count is drawn per job, the other numbers per task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MapsEntry {
    pub count: Distribution,
    /// Work of each map.
    pub seconds: Distribution,
    /// Input bytes of each map.
    #[serde(default = "nothing")]
    pub bytes: Distribution,
    /// Output bytes of each map for the reduces.
    #[serde(default = "nothing")]
    pub output_bytes: Distribution,
}

/// The reduces of a job, drawn as maps are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReducesEntry {
    pub count: Distribution,
    /// Shuffle time of each reduce.
    #[serde(default = "nothing")]
    pub shuffle_seconds: Distribution,
    /// Work of each reduce after the shuffle.
    pub seconds: Distribution,
    /// Sizes of the partitions. Times are those of a reduce of mean size, and scale with the size.
    #[serde(default)]
    pub skew: Option<Skew>,
}

fn once() -> u32 {
    1
}
fn default_attempts() -> u32 {
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

/// An error in a workload file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    #[error("{file}: {error}")]
    Syntax { file: String, error: String },
    /// A value is invalid.
    #[error("{file}: {place}: {error}")]
    Value {
        file: String,
        place: String,
        error: String,
    },
}

impl WorkloadFile {
    /// Parses a workload file; `file` is its name in errors.
    ///
    /// # Errors
    /// Fails on a syntax error or an invalid value; names the place and the value.
    pub fn read(file: &str, text: &str) -> Result<WorkloadFile, WorkloadError> {
        let read: WorkloadFile = toml::from_str(text).map_err(|error| WorkloadError::Syntax {
            file: file.to_owned(),
            error: error.to_string(),
        })?;
        read.check()
            .map_err(|(place, error)| WorkloadError::Value {
                file: file.to_owned(),
                place,
                error,
            })?;
        Ok(read)
    }

    /// Whether the output bytes of maps are known, or no job has reduces.
    pub fn has_output_bytes(&self) -> bool {
        let mut with_reduces = self
            .jobs
            .iter()
            .filter(|job| job.reduces.is_some())
            .peekable();
        let unset = |of: &Distribution| *of == Distribution::Fixed(0.0);
        with_reduces.peek().is_none() || with_reduces.any(|job| !unset(&job.maps.output_bytes))
    }

    /// Draws the jobs with a seed. The tasks of a job are created when it is submitted.
    pub fn workload(&self, seed: u64) -> Workload {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut timed: Vec<(Time, usize, u32)> = Vec::new();
        let mut common: Vec<(usize, u32)> = Vec::new();
        let mut triggered = Vec::new();
        let chains = followers(&self.chains, &self.jobs);
        let follows: BTreeSet<usize> = chains
            .values()
            .flat_map(|(later, _)| later.iter().copied())
            .collect();
        for (entry, job) in self
            .jobs
            .iter()
            .enumerate()
            .filter(|(entry, _)| !follows.contains(entry))
        {
            let numbers = 1..=job.repeat;
            match &job.submit {
                Some(trigger) if trigger == "trigger" => {
                    triggered.push(self.chained(entry, 1, Time(0), seed))
                }
                None if self.arrivals.is_some() => {
                    common.extend(numbers.map(|number| (entry, number)))
                }
                submit => {
                    let from = submit
                        .as_deref()
                        .and_then(|text| text.parse::<Span>().ok())
                        .unwrap_or_default();
                    let together = Arrivals::Fixed(0.0);
                    let arrivals = job.arrivals.as_ref().unwrap_or(&together);
                    let times = arrivals.times(Time(0) + from, job.repeat as usize, &mut random);
                    timed.extend(
                        times
                            .into_iter()
                            .zip(numbers)
                            .map(|(at, number)| (at, entry, number)),
                    );
                }
            }
        }
        if let Some(arrivals) = &self.arrivals {
            common.shuffle(&mut random);
            let times = arrivals.times(Time(0), common.len(), &mut random);
            timed.extend(
                times
                    .into_iter()
                    .zip(common)
                    .map(|(at, (entry, number))| (at, entry, number)),
            );
        }
        timed.sort_unstable();
        let file = self.clone();
        let plans = timed
            .into_iter()
            .map(move |(at, entry, number)| file.chained(entry, number, at, seed));
        triggered
            .into_iter()
            .fold(Workload::stream(plans), Workload::with_triggered)
    }

    /// Draws one job and its followers.
    fn chained(&self, entry: usize, number: u32, at: Time, seed: u64) -> SimulatedJob {
        let mut plan = self.plan(entry, number, at, seed);
        if let Some((later, deadline)) = followers(&self.chains, &self.jobs).remove(&entry) {
            let jobs = later
                .into_iter()
                .map(|entry| self.plan(entry, number, at, seed))
                .collect();
            plan.is_chained = true;
            plan.followed_by = Some(Box::new(Followers { jobs, deadline }));
        }
        plan
    }

    /// Draws one job. The result depends only on seed, entry and number.
    fn plan(&self, entry: usize, number: u32, at: Time, seed: u64) -> SimulatedJob {
        let job = &self.jobs[entry];
        let mut random = Pcg64::new(
            u128::from(seed),
            ((entry as u128) << 32) | u128::from(number),
        );
        let name = if job.repeat == 1 {
            job.name.clone()
        } else {
            format!("{}-{number}", job.name)
        };
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
        if let (
            Some(count),
            Some(ClusterShape {
                machines, racks, ..
            }),
        ) = (self.replicas, self.cluster)
        {
            // Uses its own random stream, so that other draws do not depend on the option.
            let mut random = Pcg64::new(
                u128::from(seed),
                (1 << 100) | ((entry as u128) << 32) | u128::from(number),
            );
            let replicas = Replicas {
                count,
                machines,
                racks,
                seed,
            };
            for map in &mut plan.maps {
                map.preferred = draw_replicas(replicas, &mut random);
            }
        }
        if let Some(reduces) = &job.reduces {
            let count = whole(reduces.count.draw(&mut random).min(TASKS_MAX.into()));
            let bytes = plan
                .maps
                .iter()
                .fold(0_u64, |sum, task| sum.saturating_add(task.output_bytes));
            // Uses its own random stream, so that other draws do not depend on the option.
            let mut skew_random = Pcg64::new(
                u128::from(seed),
                (1 << 102) | ((entry as u128) << 32) | u128::from(number),
            );
            let sizes = reduces
                .skew
                .map(|skew| skew.sizes(count as usize, &mut skew_random));
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
            let mut random = Pcg64::new(
                u128::from(seed),
                (1 << 101) | ((entry as u128) << 32) | u128::from(number),
            );
            let mut settings = cluster.settings(cluster.machines);
            settings.overheads = self.overheads;
            let alone = alone(&plan, &settings).0 as f64 / 1e6;
            plan.deadline = Some(span(alone * (1.0 + laxity.draw(&mut random))));
        }
        plan
    }

    /// Validates the file. Returns the place and description of the first error.
    fn check(&self) -> Result<(), (String, String)> {
        if let Some(arrivals) = &self.arrivals {
            arrivals
                .check()
                .map_err(|error| ("arrivals".to_owned(), error))?;
        }
        if let Some(cluster) = &self.cluster {
            cluster
                .check()
                .map_err(|(key, error)| (format!("cluster.{key}"), error))?;
        }
        self.progress
            .check()
            .map_err(|error| ("progress".to_owned(), error))?;
        let bandwidth = self.overheads.machine_bandwidth;
        if bandwidth.is_some_and(|most| most.disk == Some(0) || most.network == Some(0)) {
            let error = "must be positive; remove it for no limit".to_owned();
            return Err(("overheads.machine-bandwidth".to_owned(), error));
        }
        let tasks = |job: &JobEntry| {
            let reduces = job
                .reduces
                .as_ref()
                .map_or(0.0, |reduces| reduces.count.typical());
            let each = [job.maps.count.typical(), reduces].map(|count| count.min(TASKS_MAX.into()));
            f64::from(job.repeat) * each.iter().sum::<f64>().max(1.0)
        };
        let tasks: f64 = self.jobs.iter().map(tasks).sum();
        if tasks > ALL_TASKS_MAX as f64 {
            let error = format!("too many tasks: about {tasks:.0} (limit {ALL_TASKS_MAX})");
            return Err(("jobs".to_owned(), error));
        }
        if let Some(replicas) = self
            .replicas
            .filter(|replicas| !(1..=REPLICAS_MAX).contains(replicas))
        {
            return Err((
                "replicas".to_owned(),
                format!("invalid number {replicas}; give 1 to {REPLICAS_MAX}"),
            ));
        }
        let mut names = BTreeSet::new();
        for job in &self.jobs {
            job.check()
                .map_err(|(field, error)| (format!("job {:?}, {field}", job.name), error))?;
            if job.laxity.is_some() && self.cluster.is_none() {
                let error =
                    "laxity is relative to the run time on a cluster; set a cluster".to_owned();
                return Err((format!("job {:?}, laxity", job.name), error));
            }
            if !names.insert(&job.name) {
                let error = "duplicate name; rename one, or use repeat".to_owned();
                return Err((format!("job {:?}", job.name), error));
            }
        }
        chain::check(&self.chains, &self.jobs)
    }
}

impl JobEntry {
    fn check(&self) -> Result<(), (&'static str, String)> {
        let in_field = |field: &'static str| move |error: String| (field, error);
        if let Some(submit) = self.submit.as_deref().filter(|submit| *submit != "trigger") {
            let parsed = submit.parse::<Span>();
            parsed.map_err(|error| ("submit", format!("{error}, or \"trigger\"")))?;
        }
        if self.submit.as_deref() == Some("trigger") && self.repeat != 1 {
            return Err(("repeat", "a triggered job cannot be repeated".to_owned()));
        }
        if self.repeat > REPEAT_MAX {
            return Err((
                "repeat",
                format!("too many repeats: {} (limit {REPEAT_MAX})", self.repeat),
            ));
        }
        if self.slowstart > Ratio::ONE || self.slowstart < Ratio::ZERO {
            return Err((
                "slowstart",
                format!("invalid fraction {}; give 0 to 1", self.slowstart),
            ));
        }
        if self.attempts_max == 0 {
            return Err(("attempts-max", "must be positive".to_owned()));
        }
        self.arrivals
            .as_ref()
            .map_or(Ok(()), Arrivals::check)
            .map_err(in_field("arrivals"))?;
        if self.laxity.is_some() && self.deadline.is_some() {
            return Err(("laxity", "set either deadline or laxity".to_owned()));
        }
        self.laxity
            .as_ref()
            .map_or(Ok(()), Distribution::check)
            .map_err(in_field("laxity"))?;
        check_count(&self.maps.count).map_err(in_field("maps.count"))?;
        self.maps
            .seconds
            .check()
            .map_err(in_field("maps.seconds"))?;
        self.maps.bytes.check().map_err(in_field("maps.bytes"))?;
        self.maps
            .output_bytes
            .check()
            .map_err(in_field("maps.output-bytes"))?;
        if let Some(reduces) = &self.reduces {
            check_count(&reduces.count).map_err(in_field("reduces.count"))?;
            reduces
                .shuffle_seconds
                .check()
                .map_err(in_field("reduces.shuffle-seconds"))?;
            reduces
                .seconds
                .check()
                .map_err(in_field("reduces.seconds"))?;
            reduces
                .skew
                .map_or(Ok(()), Skew::check)
                .map_err(in_field("reduces.skew"))?;
        }
        Ok(())
    }
}

fn check_count(of: &Distribution) -> Result<(), String> {
    of.check()?;
    match of {
        Distribution::Fixed(number) if *number > f64::from(TASKS_MAX) => {
            Err(format!("too many tasks: {number} (limit {TASKS_MAX})"))
        }
        _ => Ok(()),
    }
}

/// Rounds to the nearest integer, saturating.
fn whole(number: f64) -> u64 {
    number.round() as u64
}
