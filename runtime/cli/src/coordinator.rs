//! `nap coordinator`: the flags of the daemon that manages all jobs.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use napreduce_cluster::{CoordinatorConfiguration, run_coordinator};
use napreduce_engine::SuspendedMax;
use napreduce_history::open_history;
use napreduce_protocol::ByteSize;
use napreduce_schedulers::SchedulerConfiguration;

use crate::cluster::{ClusterArguments, CoordinatorOptions, Fsync, set};
use crate::failure::usage;
use crate::log::LogArguments;
use crate::parent::end_with_parent;

/// Run a coordinator
///
/// Listens for workers and clients until it is interrupted. Restarted in the same directory it continues
/// from its journal; running tasks are not affected.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
#[command(after_help = "\
Examples:
  nap coordinator                                      for this machine only
  nap coordinator --dir /srv/nap --bind 0.0.0.0:7000   for other hosts as well
  nap worker --coordinator HOST:7000 --secret-file F   on each host; F is a copy of /srv/nap/secret")]
pub struct Arguments {
    #[command(flatten)]
    pub options: CoordinatorOptions,

    /// Maximum suspended attempts per worker, or unlimited; see `[preemption] when-full` for what happens
    /// beyond it [default: 2]
    #[arg(long, value_name = "N", env = "NAPREDUCE_SUSPENDED_MAX")]
    pub suspended_max: Option<SuspendedMax>,

    #[command(flatten)]
    pub log: LogArguments,
}

impl Arguments {
    /// Returns the flags that were given, for another process.
    pub fn to_line(&self) -> Vec<OsString> {
        let options = &self.options;
        let time = |time: Duration| format!("{}us", time.as_micros());
        let size = |size: ByteSize| size.bytes().to_string();
        let flags = [
            ("--bind", options.bind.clone()),
            ("--heartbeat", options.heartbeat.map(time)),
            ("--liveness", options.liveness.map(time)),
            ("--fsync", options.fsync.map(|fsync| fsync.to_string())),
            ("--journal-bytes-max", options.journal_bytes_max.map(size)),
            (
                "--history-max",
                options.history_max.map(|max| max.to_string()),
            ),
            ("--history-bytes-max", options.history_bytes_max.map(size)),
            ("--blob-bytes-max", options.blob_bytes_max.map(size)),
            (
                "--crashes-max",
                options.crashes_max.map(|max| max.to_string()),
            ),
            (
                "--queues",
                options.queues.as_ref().map(|queues| queues.join(",")),
            ),
            (
                "--scheduler",
                options.scheduler.map(|scheduler| scheduler.to_string()),
            ),
            (
                "--suspended-max",
                self.suspended_max.map(|max| max.to_string()),
            ),
        ];
        let given = flags
            .into_iter()
            .filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        let switches = [
            ("--no-speculation", options.no_speculation),
            ("--no-failed-logs", options.no_failed_logs),
        ];
        let switches = switches
            .into_iter()
            .filter(|(_, is_given)| *is_given)
            .map(|(flag, _)| flag.to_owned());
        given
            .flatten()
            .chain(switches)
            .map(OsString::from)
            .chain(self.log.to_line())
            .collect()
    }
}

/// Runs the coordinator until it is interrupted.
pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    end_with_parent()?;
    let configuration = configuration(arguments, cluster)?;
    arguments.log.start("coordinator")?;
    Ok(run_coordinator(configuration, open_history)?)
}

/// Returns the settings of the daemon. Errors are usage errors.
pub fn configuration(
    arguments: &Arguments,
    cluster: &ClusterArguments,
) -> Result<CoordinatorConfiguration> {
    choose(arguments, cluster).map_err(usage)
}

fn choose(arguments: &Arguments, cluster: &ClusterArguments) -> Result<CoordinatorConfiguration> {
    let file = cluster.configuration()?;
    let flags = arguments.options.clone();
    let table = file.coordinator;
    let bytes = |size: Option<ByteSize>| size.map(ByteSize::bytes);
    let scheduler = SchedulerConfiguration {
        scheduler: flags.scheduler.or(table.scheduler).unwrap_or_default(),
        tables: file.scheduler,
    };
    // Report wrong parameters before anything starts.
    scheduler
        .build()
        .with_context(|| format!("cannot set up the scheduler {}", scheduler.scheduler))?;
    let scheduler = Arc::new(scheduler);
    let mut chosen = CoordinatorConfiguration::new(
        cluster.directory()?,
        scheduler,
        SchedulerConfiguration::read,
    );
    set(&mut chosen.bind, flags.bind, table.bind);
    set(&mut chosen.heartbeat, flags.heartbeat, table.heartbeat);
    set(&mut chosen.liveness, flags.liveness, table.liveness);
    let fsync = flags.fsync.or(table.fsync);
    set(&mut chosen.fsync, fsync.map(|Fsync(policy)| policy), None);
    set(
        &mut chosen.journal_bytes_max,
        bytes(flags.journal_bytes_max),
        bytes(table.journal_bytes_max),
    );
    set(
        &mut chosen.history_max,
        flags.history_max,
        table.history_max,
    );
    set(
        &mut chosen.history_bytes_max,
        bytes(flags.history_bytes_max),
        bytes(table.history_bytes_max),
    );
    set(
        &mut chosen.blob_bytes_max,
        bytes(flags.blob_bytes_max),
        bytes(table.blob_bytes_max),
    );
    if flags.no_speculation || table.speculation == Some(false) {
        chosen.speculation = None;
    }
    chosen.failed_logs = !flags.no_failed_logs && table.failed_logs != Some(false);
    set(
        &mut chosen.crashes_max,
        flags.crashes_max,
        table.crashes_max,
    );
    set(&mut chosen.queues, flags.queues, table.queues);
    set(&mut chosen.preemption, None, file.preemption);
    set(
        &mut chosen.preemption.suspended_max,
        arguments.suspended_max,
        None,
    );
    anyhow::ensure!(
        chosen.liveness > chosen.heartbeat,
        "--liveness {:?}: must be longer than --heartbeat ({:?}), or every worker is lost; give several heartbeats",
        chosen.liveness,
        chosen.heartbeat
    );
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(file: &str) -> (tempfile::TempDir, ClusterArguments) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("napreduce.toml"), file).expect("a written file");
        let dir = Some(folder.path().to_owned());
        (
            folder,
            ClusterArguments {
                dir,
                ..ClusterArguments::default()
            },
        )
    }

    fn of(options: CoordinatorOptions) -> Arguments {
        Arguments {
            options,
            ..Arguments::default()
        }
    }

    #[test]
    fn flag_overrides_file_and_file_overrides_default() {
        let (_folder, cluster) = cluster("[coordinator]\nliveness = \"10s\"\nheartbeat = \"1s\"\n");
        let flags = of(CoordinatorOptions {
            heartbeat: Some(Duration::from_millis(500)),
            ..CoordinatorOptions::default()
        });
        let chosen = configuration(&flags, &cluster).expect("it makes sense");
        assert_eq!(
            (chosen.heartbeat, chosen.liveness),
            (Duration::from_millis(500), Duration::from_secs(10))
        );
        assert_eq!(
            (chosen.bind.as_str(), chosen.speculation.is_some()),
            ("127.0.0.1:0", true)
        );
    }

    #[test]
    fn suspended_max_is_two_unless_set_by_file_or_flag() {
        let max = |file: &str, flag: Option<SuspendedMax>| {
            let (_folder, cluster) = cluster(file);
            let flags = Arguments {
                suspended_max: flag,
                ..Arguments::default()
            };
            configuration(&flags, &cluster)
                .expect("it makes sense")
                .preemption
                .suspended_max
        };
        let file = "[preemption]\nsuspended-max = \"unlimited\"\n";
        assert_eq!(max("", None), SuspendedMax::AtMost(2));
        assert_eq!(
            max("[preemption]\nwhen-full = \"kill\"\n", None),
            SuspendedMax::AtMost(2)
        );
        assert_eq!(max(file, None), SuspendedMax::Unlimited);
        assert_eq!(
            max(file, Some(SuspendedMax::AtMost(5))),
            SuspendedMax::AtMost(5)
        );
    }

    #[test]
    fn crashes_max_is_set_by_flag_or_file() {
        let max = |file: &str, flag: Option<u32>| {
            let (_folder, cluster) = cluster(file);
            let flags = of(CoordinatorOptions {
                crashes_max: flag,
                ..CoordinatorOptions::default()
            });
            configuration(&flags, &cluster)
                .expect("it makes sense")
                .crashes_max
        };
        let file = "[coordinator]\ncrashes-max = 7\n";
        assert_eq!(
            (max("", None), max(file, None), max(file, Some(0))),
            (3, 7, 0)
        );
    }

    #[test]
    fn failed_logs_are_kept_unless_disabled_by_flag_or_file() {
        let kept = |file: &str, flag: bool| {
            let (_folder, cluster) = cluster(file);
            let flags = of(CoordinatorOptions {
                no_failed_logs: flag,
                ..CoordinatorOptions::default()
            });
            configuration(&flags, &cluster)
                .expect("it makes sense")
                .failed_logs
        };
        let file = "[coordinator]\nfailed-logs = false\n";
        assert_eq!(
            (kept("", false), kept("", true), kept(file, false)),
            (true, false, false)
        );
    }

    #[test]
    fn sizes_have_the_units_of_job_programs() {
        let (_folder, cluster) = cluster("[coordinator]\njournal-bytes-max = \"2k\"\n");
        let chosen = configuration(&Arguments::default(), &cluster).expect("it makes sense");
        assert_eq!(chosen.journal_bytes_max, 2048);
    }

    #[test]
    fn history_bytes_max_is_set_by_flag_or_file() {
        let max = |file: &str, flag: Option<u64>| {
            let (_folder, cluster) = cluster(file);
            let flag = flag.map(|bytes| bytes.to_string().parse().expect("a size"));
            let flags = of(CoordinatorOptions {
                history_bytes_max: flag,
                ..CoordinatorOptions::default()
            });
            configuration(&flags, &cluster)
                .expect("it makes sense")
                .history_bytes_max
        };
        let file = "[coordinator]\nhistory-bytes-max = \"2GiB\"\n";
        assert_eq!(
            (max("", None), max(file, None), max(file, Some(3))),
            (8 << 30, 2 << 30, 3)
        );
    }

    #[test]
    fn to_line_returns_the_given_flags() {
        use clap::Parser;

        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            arguments: Arguments,
        }
        let line = "--bind :1 --heartbeat 1s --liveness 1h --fsync 20ms --journal-bytes-max 1MiB --history-max 3 \
                    --history-bytes-max 5k --blob-bytes-max 2k --no-speculation --no-failed-logs --crashes-max 5 --queues a,b --scheduler fifo --suspended-max unlimited";
        let parsed = |line: Vec<OsString>| {
            let line = [vec!["nap".into()], line].concat();
            Line::try_parse_from(line)
                .unwrap_or_else(|error| panic!("{error}"))
                .arguments
        };
        let given = parsed(line.split_whitespace().map(OsString::from).collect());
        assert_eq!(
            format!("{:?}", parsed(given.to_line())),
            format!("{given:?}")
        );
        assert_eq!(Arguments::default().to_line(), [""; 0]);
    }

    #[test]
    fn liveness_below_heartbeat_is_rejected() {
        let (_folder, cluster) = cluster("[coordinator]\nliveness = \"100ms\"\n");
        let error = configuration(&Arguments::default(), &cluster)
            .expect_err("it makes no sense")
            .to_string();
        assert!(error.contains("or every worker is lost"), "{error}");
    }
}
