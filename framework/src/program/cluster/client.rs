//! The cluster client behind the flags of a program.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use napreduce_cluster::{
    ClusterClient, ClusterPlace, FollowOptions, OnInterrupt, Patience, SubmitOptions,
};
use napreduce_local::{ChainKeeper, SideFileSource};
use napreduce_protocol::requests::ListWorkers;
use napreduce_protocol::{JobError, JobPlan, JobReport, WorkerPhase, parse_time};

use super::{ClusterArguments, Following, InterruptArgument, Submit};
use crate::program::error::Error;
use crate::program::typed_paths::TypedPaths;

const TIMEOUT_VARIABLE: &str = "NAPREDUCE_CONNECT_TIMEOUT";

/// Runs the jobs of one program on a cluster.
struct Cluster {
    place: ClusterPlace,
    arguments: ClusterArguments,
    submit: SubmitOptions,
    follow: FollowOptions,
    /// `None` until a job needs the connection.
    connected: Option<Connected>,
}

struct Connected {
    client: ClusterClient,
    /// Paths as typed, relative to the directory at the start of the program.
    paths: TypedPaths,
}

/// Returns the named cluster.
pub(super) fn cluster(
    _named_by: &str,
    place: &OsStr,
    arguments: &ClusterArguments,
    following: Following,
) -> Result<Box<dyn Submit>, Error> {
    let place =
        ClusterPlace::parse(place, arguments.secret_file.as_deref()).map_err(JobError::from)?;
    let Following {
        progress,
        quiet,
        file_bytes_max,
    } = following;
    let on_interrupt = match arguments.on_interrupt {
        Some(InterruptArgument::Detach) => OnInterrupt::Detach,
        Some(InterruptArgument::Kill) | None => OnInterrupt::Kill,
    };
    let files = arguments.files.concat();
    Ok(Box::new(Cluster {
        place,
        arguments: arguments.clone(),
        submit: SubmitOptions {
            files,
            file_bytes_max,
            ..SubmitOptions::default()
        },
        follow: FollowOptions {
            progress,
            quiet,
            on_interrupt,
            elapsed: Duration::ZERO,
        },
        connected: None,
    }))
}

impl Connected {
    fn to(
        place: &ClusterPlace,
        arguments: &ClusterArguments,
        tell: bool,
    ) -> Result<Connected, Error> {
        let paths = TypedPaths::from_here()?;
        let patience = patience(arguments, tell)?;
        let client = ClusterClient::connect(place.clone(), patience).map_err(JobError::from)?;
        Ok(Connected { client, paths })
    }
}

impl Cluster {
    fn connected(&mut self) -> Result<&mut Connected, Error> {
        match &mut self.connected {
            Some(connected) => Ok(connected),
            none => {
                let connected = Connected::to(&self.place, &self.arguments, !self.follow.quiet)?;
                Ok(none.insert(connected))
            }
        }
    }
}

fn patience(arguments: &ClusterArguments, tell: bool) -> Result<Patience, Error> {
    let default = Patience {
        tell,
        ..Patience::default()
    };
    let named = std::env::var(TIMEOUT_VARIABLE)
        .ok()
        .filter(|text| !text.is_empty());
    let wrong = |why| Error::Usage(format!("{TIMEOUT_VARIABLE}: {why}"));
    let named = named
        .map(|text| parse_time(&text).map_err(wrong))
        .transpose()?;
    Ok(Patience {
        first: arguments.connect_timeout.or(named).unwrap_or(default.first),
        ..default
    })
}

impl Submit for Cluster {
    fn keep_chain(&self, chain: u128, root: PathBuf) -> Result<Box<dyn ChainKeeper>, JobError> {
        Ok(self.place.keep_chain(chain, root)?)
    }

    fn set_side_files(&mut self, files: &[SideFileSource]) {
        self.submit.files = files.to_vec();
    }

    fn reduce_slots(&mut self) -> Result<u32, Error> {
        let workers = self
            .connected()?
            .client
            .ask(ListWorkers)
            .map_err(JobError::from)?;
        let up = workers
            .iter()
            .filter(|worker| worker.state == WorkerPhase::Up);
        Ok(up.map(|worker| worker.reduce_slots.0).sum::<u32>().max(1))
    }

    /// Messages about the paths of the job show them as typed.
    fn run(&mut self, mut plan: JobPlan) -> Result<JobReport, Error> {
        let submit = self.submit.clone();
        let follow = self.follow.clone();
        let detach = self.arguments.detach;
        let Connected { client, paths } = self.connected()?;
        let typed = plan.output.clone();
        let relative = paths.make_absolute(&mut plan);
        if detach {
            let job = client.submit(plan, &submit).map_err(JobError::from);
            let job = job.map_err(|error| paths.as_typed(error, relative))?;
            return Err(Error::Detached { job });
        }
        match client.run(plan, &submit, &follow) {
            Ok(report) => Ok(JobReport {
                output: typed,
                ..report
            }),
            Err(error) => Err(paths.as_typed(error, relative).into()),
        }
    }
}
