//! Running a program's jobs on a cluster: its flags, and the client behind them.
//!
//! Owns what the flags mean and that none of them is without effect. Does not own the conversation with a
//! coordinator (live runtime).

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use napreduce_live::{
    ClusterClient, ClusterPlace, FollowOptions, JobError, JobPlan, JobReport, OnInterrupt, Patience,
    ProgressMode, SideFileSource, SubmitOptions, parse_time,
};

use super::error::Error;
use super::side_files;
use super::typed_paths::TypedPaths;

const VARIABLE: &str = "NAPREDUCE_CLUSTER";
const TIMEOUT_VARIABLE: &str = "NAPREDUCE_CONNECT_TIMEOUT";

/// The flags that are about a cluster.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ClusterArguments {
    /// Run on a cluster, named by its directory or its coordinator's address [env: NAPREDUCE_CLUSTER]
    #[arg(long, value_name = "DIR|HOST:PORT")]
    cluster: Option<OsString>,

    /// Copy of the cluster's secret, for HOST:PORT [env: NAPREDUCE_SECRET_FILE]
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,

    /// How long to wait for a coordinator that does not answer [default: 1m] [env: NAPREDUCE_CONNECT_TIMEOUT]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    connect_timeout: Option<Duration>,

    /// Queue of the cluster [default: default]
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,

    /// Jobs of higher priority go first on a cluster [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,

    /// When the job should be done, or the last of a chain, counted from now, such as 10m; for schedulers of
    /// a cluster that care
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub deadline: Option<Duration>,

    /// Files that every task finds by name (napreduce::program::side_file): PATH, or PATH#NAME for another
    /// name; with commas between them (`\,` and `\#` in a path are these letters)
    #[arg(long, value_name = "PATH[#NAME],...", value_parser = side_files::parse)]
    pub files: Vec<Vec<SideFileSource>>,

    /// Submit to the cluster, print the job's id on standard output and leave
    #[arg(long)]
    detach: bool,

    /// What Ctrl-C does to a job on a cluster: kill it, or leave it and go [default: kill]
    #[arg(long, value_name = "WHAT", value_enum)]
    on_interrupt: Option<Interrupted>,
}

/// What becomes of a job whose submitter is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Interrupted {
    /// It goes on
    Detach,
    /// It is killed
    Kill,
}

impl ClusterArguments {
    /// The cluster to run on; `None` for this program's own processes. Flags that would do nothing
    /// there are refused.
    pub fn place(&self) -> Result<Option<ClusterPlace>, Error> {
        let named = self.cluster.clone().or_else(|| std::env::var_os(VARIABLE));
        // Nothing is how to get away from a variable that is set.
        if let Some(text) = named.filter(|text| !text.is_empty()) {
            let place = ClusterPlace::parse(&text, self.secret_file.as_deref());
            return Ok(Some(place.map_err(JobError::from)?));
        }
        match self.cluster_only() {
            Some(flag) => Err(Error::Usage(format!("{flag} is for clusters; name one with --cluster"))),
            None => Ok(None),
        }
    }

    fn patience(&self, tell: bool) -> Result<Patience, Error> {
        let default = Patience { tell, ..Patience::default() };
        let named = std::env::var(TIMEOUT_VARIABLE).ok().filter(|text| !text.is_empty());
        let wrong = |why| Error::Usage(format!("{TIMEOUT_VARIABLE}: {why}"));
        let named = named.map(|text| parse_time(&text).map_err(wrong)).transpose()?;
        Ok(Patience { first: self.connect_timeout.or(named).unwrap_or(default.first), ..default })
    }

    /// Whether a cluster was named on the command line.
    pub(super) fn named(&self) -> bool {
        self.cluster.as_ref().is_some_and(|named| !named.is_empty())
    }

    /// A flag that only a cluster makes something of, if one was given.
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
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// Whether Ctrl-C leaves the job that runs to itself.
    pub fn leaves_interrupted(&self) -> bool {
        self.on_interrupt == Some(Interrupted::Detach)
    }

    /// Puts into a plan what was said about the cluster's scheduler.
    pub fn apply(&self, plan: &mut JobPlan) {
        if let Some(queue) = &self.queue {
            plan.queue.clone_from(queue);
        }
        plan.priority = self.priority.unwrap_or(plan.priority);
        plan.deadline = self.deadline.or(plan.deadline);
    }
}

/// How the jobs of one program run on a cluster.
pub(super) struct Cluster {
    client: ClusterClient,
    submit: SubmitOptions,
    follow: FollowOptions,
    /// Whether jobs are left to themselves.
    pub(super) detach: bool,
    paths: TypedPaths,
}

impl Cluster {
    pub(super) fn connect(
        place: ClusterPlace,
        arguments: &ClusterArguments,
        progress: ProgressMode,
        quiet: bool,
        file_bytes_max: u64,
    ) -> Result<Cluster, Error> {
        let paths = TypedPaths::from_here()?;
        let patience = arguments.patience(!quiet)?;
        let client = ClusterClient::connect(place, patience).map_err(JobError::from)?;
        let on_interrupt = match arguments.on_interrupt {
            Some(Interrupted::Detach) => OnInterrupt::Detach,
            Some(Interrupted::Kill) | None => OnInterrupt::Kill,
        };
        let files = arguments.files.concat();
        Ok(Cluster {
            client,
            submit: SubmitOptions { files, file_bytes_max, ..SubmitOptions::default() },
            follow: FollowOptions { progress, quiet, on_interrupt },
            detach: arguments.detach,
            paths,
        })
    }

    /// Takes these files along with the jobs that are submitted from here on.
    pub(super) fn take_along(&mut self, files: &[SideFileSource]) {
        self.submit.files = files.to_vec();
    }

    /// How many reduces the workers that are there run at once; at least one.
    pub(super) fn reduce_slots(&mut self) -> Result<u32, Error> {
        let workers = self.client.workers().map_err(JobError::from)?;
        let up = workers.iter().filter(|worker| worker.state == napreduce_live::WorkerPhase::Up);
        Ok(up.map(|worker| worker.reduce_slots.0).sum::<u32>().max(1))
    }

    /// Runs a job to its end, or only submits it. What is said of its paths is said as they were typed.
    pub(super) fn run(&mut self, mut plan: JobPlan) -> Result<JobReport, Error> {
        let typed = plan.output.clone();
        let relative = self.paths.make_absolute(&mut plan);
        if self.detach {
            let job = self.client.submit(plan, &self.submit).map_err(JobError::from);
            let job = job.map_err(|error| self.paths.as_typed(error, relative))?;
            return Err(Error::Detached { job });
        }
        match self.client.run(plan, &self.submit, &self.follow) {
            Ok(report) => Ok(JobReport { output: typed, ..report }),
            Err(error) => Err(self.paths.as_typed(error, relative).into()),
        }
    }
}

#[cfg(test)]
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
        Line::try_parse_from(line).unwrap_or_else(|error| panic!("{error}")).cluster
    }

    #[test]
    fn a_cluster_is_a_directory_or_an_address_with_a_secret() {
        let place = parse(&["--cluster", "/some/where"]).place().expect("a directory");
        assert!(matches!(place, Some(ClusterPlace::Directory(_))));
        let error = parse(&["--cluster", "host:7000"]).place().expect_err("no secret");
        assert_eq!(error.exit_status(), 2);
        assert!(error.to_string().contains("name it with --secret-file"), "{error}");
    }

    #[test]
    fn no_flag_is_without_effect() {
        for arguments in [
            &["--queue", "prod"][..],
            &["--priority", "-5"],
            &["--deadline", "10m"],
            &["--detach"],
            &["--on-interrupt", "kill"],
            &["--secret-file", "s"],
            &["--connect-timeout", "1s"],
        ] {
            // Said to be embedded, since whoever runs the tests may have set the variable.
            let error = parse(&[&["--cluster", ""], arguments].concat()).place().expect_err("no cluster");
            let expected = format!("{} is for clusters; name one with --cluster", arguments[0]);
            assert_eq!((error.exit_status(), error.to_string()), (2, expected));
        }
        assert!(matches!(parse(&["--cluster", "", "--files", "a,b#c"]).place(), Ok(None)));
    }

    #[test]
    fn what_is_said_to_the_scheduler_is_in_the_plan() {
        let mut plan = JobPlan::new("job", "out");
        let arguments = parse(&["--queue", "prod", "--priority", "-5", "--deadline", "1h30m"]);
        arguments.apply(&mut plan);
        let deadline = Some(Duration::from_secs(5400));
        assert_eq!((plan.queue.as_str(), plan.priority, plan.deadline), ("prod", -5, deadline));
        parse(&[]).apply(&mut plan);
        assert_eq!((plan.queue.as_str(), plan.priority), ("prod", -5));
    }
}
