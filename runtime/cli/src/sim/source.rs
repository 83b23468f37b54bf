//! The jobs of a simulation, read from a workload file, a published workload, a trace or a history.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use napreduce_engine::{Slots, Span};
use napreduce_sim::{
    ClusterShape, Overheads, ProgressModel, SizeModel, SwimTrace, Workload, WorkloadFile,
    decompressed, published, read_workload_text,
};

use super::arguments::Arguments;
use super::recorded::Recorded;

/// The jobs of a simulation and their environment.
pub struct Source {
    pub name: String,
    origin: Origin,
    /// The number of jobs.
    pub jobs: usize,
    /// The default seed.
    pub seed: u64,
    /// The cluster to simulate by default.
    pub shape: Option<ClusterShape>,
    pub overheads: Overheads,
    /// The progress that attempts report.
    pub progress_model: ProgressModel,
    /// The interval of progress reports.
    pub progress: Option<Span>,
    /// Whether any job has the output bytes of its maps, or no job has reduces.
    pub has_output_bytes: bool,
}

enum Origin {
    /// Drawn from a file for each seed.
    Workload(Box<WorkloadFile>),
    /// The same for each seed.
    Trace(SwimTrace, SizeModel),
    /// The same for each seed.
    Recorded(Box<Recorded>),
}

impl Source {
    /// Reads the source that the flags name.
    pub fn read(arguments: &Arguments) -> Result<Source> {
        match (&arguments.recorded, &arguments.trace, &arguments.workload) {
            (Some(what), ..) => Ok(Source::of_recorded(Recorded::read(what, &arguments.job)?)),
            (None, Some(path), _) => Source::read_trace(path, arguments),
            (None, None, Some(name)) => Source::read_workload(name, arguments),
            (None, None, None) => {
                anyhow::bail!("nothing to simulate; give --workload, --trace or --recorded")
            }
        }
    }

    fn read_workload(name: &str, arguments: &Arguments) -> Result<Source> {
        let mut file = match published(name) {
            Some(file) => file?,
            None => {
                let text = read_workload_text(name.as_ref()).with_context(|| {
                    let known: Vec<&str> = napreduce_sim::PUBLISHED
                        .iter()
                        .map(|known| known.name)
                        .collect();
                    format!(
                        "cannot read {name}, and no published workload has this name ({})",
                        known.join(", ")
                    )
                })?;
                WorkloadFile::read(name, &text)?
            }
        };
        // The racks decide where copies of inputs are.
        if let (Some(racks), Some(cluster)) = (arguments.racks, &mut file.cluster) {
            cluster.racks = racks;
        }
        let jobs = file.jobs.iter().map(|job| job.repeat as usize).sum();
        Ok(Source {
            seed: file.seed,
            shape: file.cluster,
            overheads: file.overheads,
            progress_model: file.progress,
            has_output_bytes: file.has_output_bytes(),
            ..Source::of(name, jobs, Origin::Workload(Box::new(file)))
        })
    }

    fn read_trace(path: &Path, arguments: &Arguments) -> Result<Source> {
        let name = path.display().to_string();
        let unreadable = || format!("cannot read {name}");
        let file = File::open(path).with_context(unreadable)?;
        let text = decompressed(file).with_context(unreadable)?;
        let mut trace = SwimTrace::read(&name, text)?;
        let traced = &arguments.trace_arguments;
        if let Some(jobs) = traced.jobs {
            trace.jobs.truncate(jobs);
        }
        let nodes = arguments.nodes.unwrap_or(10);
        if let Some(original) = traced.trace_nodes {
            ensure!(original > 0, "--trace-nodes 0: must be at least 1");
            trace = trace.scaled(nodes, original);
        }
        let block = traced.block.bytes();
        let bytes_per_reduce = traced.bytes_per_reduce.bytes();
        ensure!(block > 0, "--block 0: must be positive (default 64MiB)");
        ensure!(
            bytes_per_reduce > 0,
            "--bytes-per-reduce 0: must be positive (default 1GiB)"
        );
        let model = SizeModel {
            block,
            bytes_per_reduce,
            reduces_max: Some(nodes),
            ..SizeModel::default()
        };
        model.check(&trace).with_context(|| name.clone())?;
        // No progress reports: traces last days, and reports would dominate the events.
        let jobs = trace.jobs.len();
        Ok(Source {
            progress: None,
            ..Source::of(&name, jobs, Origin::Trace(trace, model))
        })
    }

    fn of_recorded(recorded: Recorded) -> Source {
        let mut with_reduces = recorded
            .jobs
            .iter()
            .filter(|job| !job.reduces.is_empty())
            .peekable();
        let has_output_bytes = with_reduces.peek().is_none()
            || with_reduces.any(|job| job.maps.iter().any(|map| map.output_bytes > 0));
        let name = recorded.name.clone();
        let jobs = recorded.jobs.len();
        Source {
            shape: Some(recorded.shape()),
            overheads: recorded.overheads,
            has_output_bytes,
            ..Source::of(&name, jobs, Origin::Recorded(Box::new(recorded)))
        }
    }

    /// Returns a source with defaults.
    fn of(name: &str, jobs: usize, origin: Origin) -> Source {
        Source {
            name: name.to_owned(),
            origin,
            jobs,
            seed: 0,
            shape: None,
            overheads: Overheads::default(),
            progress_model: ProgressModel::default(),
            progress: Some(Span::from_secs(1)),
            has_output_bytes: true,
        }
    }

    /// Returns the recorded history, if this is one.
    pub fn recorded(&self) -> Option<&Recorded> {
        match &self.origin {
            Origin::Recorded(recorded) => Some(recorded),
            Origin::Workload(_) | Origin::Trace(..) => None,
        }
    }

    /// Returns the slots of each machine, or nothing if all are alike.
    pub fn unlike_slots(&self) -> Vec<Slots> {
        self.recorded()
            .map_or_else(Vec::new, Recorded::unlike_slots)
    }

    /// Returns what to do if no job has the output bytes of its maps.
    pub fn remedy_without_output_bytes(&self) -> &'static str {
        match &self.origin {
            Origin::Recorded(_) => "; record jobs on a cluster of this version",
            Origin::Workload(_) | Origin::Trace(..) => {
                "; give output-bytes in the maps of its jobs, for example \
                 maps = { count = 8, seconds = 15, output-bytes = 64000000 }"
            }
        }
    }

    /// Returns priority, queue and deadline of each job; nothing for a trace.
    pub fn requests(&self, seed: u64) -> Vec<(i32, Arc<str>, Option<Span>)> {
        match &self.origin {
            Origin::Trace(..) => Vec::new(),
            Origin::Workload(_) | Origin::Recorded(_) => {
                let jobs = self.workload(seed).into_jobs().into_iter();
                jobs.map(|job| (job.priority, job.queue, job.deadline))
                    .collect()
            }
        }
    }

    /// Returns the jobs of one run.
    pub fn workload(&self, seed: u64) -> Workload {
        match &self.origin {
            Origin::Workload(file) => file.workload(seed),
            Origin::Trace(trace, model) => trace.clone().workload(*model),
            Origin::Recorded(recorded) => Workload::of(recorded.jobs.to_vec()),
        }
    }
}
