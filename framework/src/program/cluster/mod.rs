//! The cluster flags of a program, and the check that each of them has an effect. Without the feature
//! `cluster` the flags exist, but `--cluster` is an error.

#[cfg(feature = "cluster")]
mod client;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use napreduce_local::{ChainKeeper, ProgressMode, SideFileSource};
use napreduce_protocol::{JobError, JobPlan, JobReport};
use napreduce_task::StartFetch;

#[cfg(feature = "cluster")]
use self::client::cluster;
use super::error::Error;

/// How tasks fetch map outputs from other workers.
#[cfg(feature = "cluster")]
pub(super) const START_FETCH: Option<StartFetch> = Some(napreduce_cluster::start_fetch);
#[cfg(not(feature = "cluster"))]
pub(super) const START_FETCH: Option<StartFetch> = None;

const VARIABLE: &str = "NAPREDUCE_CLUSTER";

/// The flags that are about a cluster.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub(crate) struct ClusterArguments {
    /// Cluster to run on: its directory, or the address of its coordinator [env: NAPREDUCE_CLUSTER]
    #[cfg_attr(feature = "cli", arg(long, value_name = "DIR|HOST:PORT"))]
    cluster: Option<OsString>,

    /// Copy of the cluster's secret, for HOST:PORT [env: NAPREDUCE_SECRET_FILE]
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE"))]
    secret_file: Option<PathBuf>,

    /// Time to wait for an unreachable coordinator [default: 1m] [env: NAPREDUCE_CONNECT_TIMEOUT]
    #[cfg_attr(feature = "cli", arg(long, value_name = "TIME", value_parser = napreduce_protocol::parse_time))]
    connect_timeout: Option<Duration>,

    /// Queue of the cluster [default: default]
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME"))]
    pub queue: Option<String>,

    /// Priority on a cluster; jobs of higher priority run first [default: 0]
    #[cfg_attr(
        feature = "cli",
        arg(long, value_name = "N", allow_negative_numbers = true)
    )]
    pub priority: Option<i32>,

    /// Time until the job, or the last of a chain, should end, such as 10m; used by some schedulers of
    /// clusters
    #[cfg_attr(feature = "cli", arg(long, value_name = "TIME", value_parser = napreduce_protocol::parse_time))]
    pub deadline: Option<Duration>,

    /// Files that every task finds by name (napreduce::program::side_file): PATH, or PATH#NAME for another
    /// name, separated by commas (in a path, write `\,` and `\#`)
    #[cfg_attr(feature = "cli", arg(long, value_name = "PATH[#NAME],...", value_parser = super::side_files::parse))]
    pub files: Vec<Vec<SideFileSource>>,

    /// Submit to the cluster, print the job's id on standard output and leave
    #[cfg_attr(feature = "cli", arg(long))]
    pub detach: bool,

    /// Effect of Ctrl-C on a job on a cluster [default: kill]
    #[cfg_attr(feature = "cli", arg(long, value_name = "WHAT", value_enum))]
    on_interrupt: Option<InterruptArgument>,
}

/// The effect of Ctrl-C on a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
enum InterruptArgument {
    /// Leave the job running
    Detach,
    /// Kill the job
    Kill,
}

impl ClusterArguments {
    /// Returns the cluster to run on, not yet connected; `None` for local processes. Fails if a flag would
    /// have no effect.
    pub(super) fn cluster(&self, following: Following) -> Result<Option<Box<dyn Submit>>, Error> {
        let (by, named) = match &self.cluster {
            Some(place) => ("--cluster", Some(place.clone())),
            None => (VARIABLE, std::env::var_os(VARIABLE)),
        };
        // An empty value overrides the environment variable.
        if let Some(place) = named.filter(|place| !place.is_empty()) {
            return cluster(by, &place, self, following).map(Some);
        }
        match self.cluster_only() {
            Some(flag) => Err(Error::Usage(format!(
                "{flag} has no effect without --cluster; name a cluster or remove {flag}"
            ))),
            None => Ok(None),
        }
    }

    /// Returns whether the command line names a cluster.
    pub(super) fn named(&self) -> bool {
        self.cluster.as_ref().is_some_and(|named| !named.is_empty())
    }

    /// Returns a given flag that has an effect on a cluster only, if any.
    pub(super) fn cluster_only(&self) -> Option<&'static str> {
        let given = [
            ("--secret-file", self.secret_file.is_some()),
            ("--connect-timeout", self.connect_timeout.is_some()),
            ("--queue", self.queue.is_some()),
            ("--priority", self.priority.is_some()),
            ("--deadline", self.deadline.is_some()),
            ("--detach", self.detach),
            ("--on-interrupt", self.on_interrupt.is_some()),
        ];
        given
            .into_iter()
            .find(|(_, given)| *given)
            .map(|(flag, _)| flag)
    }

    /// Returns whether Ctrl-C detaches from the running job.
    pub fn leaves_interrupted(&self) -> bool {
        self.on_interrupt == Some(InterruptArgument::Detach)
    }

    /// Sets the scheduler options of a plan.
    pub fn apply(&self, plan: &mut JobPlan) {
        if let Some(queue) = &self.queue {
            plan.queue.clone_from(queue);
        }
        plan.priority = self.priority.unwrap_or(plan.priority);
        plan.deadline = self.deadline.or(plan.deadline);
    }
}

/// The cluster on which the jobs of one program run.
pub(super) trait Submit {
    /// Registers a chain of jobs with the coordinator, by its token and directory.
    fn keep_chain(&self, chain: u128, root: PathBuf) -> Result<Box<dyn ChainKeeper>, JobError>;

    /// Sends these files along with all later jobs.
    fn set_side_files(&mut self, files: &[SideFileSource]);

    /// Returns how many reduces the connected workers run at once; at least one.
    fn reduce_slots(&mut self) -> Result<u32, Error>;

    /// Runs a job to its end, or only submits it.
    fn run(&mut self, plan: JobPlan) -> Result<JobReport, Error>;
}

/// Progress display of a cluster's jobs, and limits on their side files.
#[cfg_attr(not(feature = "cluster"), allow(dead_code))]
#[derive(Debug, Clone, Copy)]
pub(super) struct Following {
    pub(super) progress: ProgressMode,
    pub(super) quiet: bool,
    /// Size limit of a side file in bytes.
    pub(super) file_bytes_max: u64,
}

#[cfg(not(feature = "cluster"))]
fn cluster(
    named_by: &str,
    _place: &std::ffi::OsStr,
    _arguments: &ClusterArguments,
    _following: Following,
) -> Result<Box<dyn Submit>, Error> {
    Err(Error::Usage(format!(
        "{named_by} needs the feature `cluster` of napreduce"
    )))
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        cluster: ClusterArguments,
    }

    fn parse(arguments: &[&str]) -> ClusterArguments {
        let line = [&["program"], arguments].concat();
        Line::try_parse_from(line)
            .unwrap_or_else(|error| panic!("{error}"))
            .cluster
    }

    fn cluster(arguments: &ClusterArguments) -> Result<Option<Box<dyn Submit>>, Error> {
        arguments.cluster(Following {
            progress: ProgressMode::Never,
            quiet: true,
            file_bytes_max: 1,
        })
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn cluster_is_directory_or_address_with_secret() {
        let named = cluster(&parse(&["--cluster", "/some/where"])).expect("a directory");
        assert!(named.is_some());
        let error = cluster(&parse(&["--cluster", "host:7000"]))
            .err()
            .expect("no secret");
        assert_eq!(error.exit_status(), 2);
        assert!(
            error.to_string().contains("name it with --secret-file"),
            "{error}"
        );
    }

    #[cfg(not(feature = "cluster"))]
    #[test]
    fn cluster_without_feature_is_rejected() {
        let error = cluster(&parse(&["--cluster", "/some/where"]))
            .err()
            .expect("no client");
        let expected = "--cluster needs the feature `cluster` of napreduce";
        assert_eq!(
            (error.exit_status(), error.to_string().as_str()),
            (2, expected)
        );
    }

    #[test]
    fn flags_without_effect_are_rejected() {
        for arguments in [
            &["--queue", "prod"][..],
            &["--priority", "-5"],
            &["--deadline", "10m"],
            &["--detach"],
            &["--on-interrupt", "kill"],
            &["--secret-file", "s"],
            &["--connect-timeout", "1s"],
        ] {
            // Explicitly embedded, since the environment of the test run may set the variable.
            let refused = cluster(&parse(&[&["--cluster", ""], arguments].concat()));
            let error = refused.err().expect("no cluster");
            let expected = format!(
                "{0} has no effect without --cluster; name a cluster or remove {0}",
                arguments[0]
            );
            assert_eq!((error.exit_status(), error.to_string()), (2, expected));
        }
        assert!(matches!(
            cluster(&parse(&["--cluster", "", "--files", "a,b#c"])),
            Ok(None)
        ));
    }

    #[test]
    fn scheduler_options_are_in_plan() {
        let mut plan = JobPlan::new("job", "out");
        let arguments = parse(&["--queue", "prod", "--priority", "-5", "--deadline", "1h30m"]);
        arguments.apply(&mut plan);
        let deadline = Some(Duration::from_secs(5400));
        assert_eq!(
            (plan.queue.as_str(), plan.priority, plan.deadline),
            ("prod", -5, deadline)
        );
        parse(&[]).apply(&mut plan);
        assert_eq!((plan.queue.as_str(), plan.priority), ("prod", -5));
    }
}
