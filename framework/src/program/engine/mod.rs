//! `--on`: running a program's jobs on an engine of somebody else.
//!
//! Owns what the flags mean, and that none of them is without effect. Does not own how engines are found and
//! started (`spark`, `hadoop`) nor what passes between this program and an engine (live runtime).

mod hadoop;
mod spark;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use napreduce_live::{
    ClusterPlace, GuestCheckpointSettings, GuestEngine, GuestEngineSettings, JobPlan, JobReport,
    ProgressMode, StorageScheme, parse_time,
};

use self::hadoop::Hadoop;
pub(super) use self::hadoop::requested as hadoop_requested;
use self::spark::Spark;
use super::cluster::ClusterArguments;
use super::error::Error;
use super::typed_paths::TypedPaths;

/// With what an engine is named that is a program of one's own.
const EXECUTED: &str = "exec:";
/// How often guests save their work unless that is said, and at most.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(60);
const CHECKPOINT_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The flags that are about another engine.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct EngineArguments {
    /// Run on another engine: Spark, named by its master, such as local[4], spark://HOST:7077, yarn or
    /// k8s://URL; hadoop, by its streaming; or exec:PROGRAM, which runs guests as docs/guests.md says
    #[arg(long, value_name = "ENGINE")]
    on: Option<String>,

    /// A setting of that engine, such as spark.executor.memory=4g
    #[arg(long, value_name = "KEY=VALUE")]
    on_conf: Vec<String>,

    /// The spark-submit to use [default: that of SPARK_HOME, of PATH, or of the module pyspark of python3],
    /// or on Hadoop the command hadoop [default: that of HADOOP_HOME, or of PATH]
    #[arg(long, value_name = "PATH")]
    on_submit: Option<PathBuf>,

    /// With --on: have each task save its work here, so that its next attempt goes on from there; a directory
    /// that every host of the engine sees, or a place in a store, such as s3://bucket/saved
    #[arg(long, value_name = "PLACE")]
    checkpoints: Option<PathBuf>,

    /// How often a task saves its work there [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    checkpoint_interval: Option<Duration>,
}

/// An engine, and how it is started.
#[derive(Debug)]
pub(super) struct EngineKind {
    runner: Runner,
    settings: BTreeMap<String, String>,
    checkpoints: Option<GuestCheckpointSettings>,
}

#[derive(Debug)]
enum Runner {
    Spark(Spark),
    Hadoop(Hadoop),
    Executed(PathBuf),
}

impl EngineArguments {
    /// The engine to run on, if it is one. Flags that would do nothing are refused.
    pub(super) fn kind(&self) -> Result<Option<EngineKind>, Error> {
        let Some(on) = &self.on else {
            let given = [
                ("--on-conf", !self.on_conf.is_empty()),
                ("--on-submit", self.on_submit.is_some()),
                ("--checkpoints", self.checkpoints.is_some()),
                ("--checkpoint-interval", self.checkpoint_interval.is_some()),
            ];
            return match given.into_iter().find(|(_, given)| *given) {
                Some((flag, _)) => {
                    Err(Error::Usage(format!("{flag} is for another engine; name one with --on")))
                }
                None => Ok(None),
            };
        };
        let settings = self.settings()?;
        let runner = match on.strip_prefix(EXECUTED) {
            Some("") => {
                return Err(Error::Usage("--on exec: names no program; give --on exec:PROGRAM".to_owned()));
            }
            Some(_) if self.on_submit.is_some() => {
                return Err(Error::Usage("--on-submit is for Spark and Hadoop; leave it out".to_owned()));
            }
            Some(program) => Runner::Executed(program.into()),
            None if on == hadoop::NAME => Runner::Hadoop(Hadoop::of(self.on_submit.clone(), &settings)),
            None => Runner::Spark(Spark::of(on, self.on_submit.clone(), &settings).map_err(Error::Usage)?),
        };
        Ok(Some(EngineKind { runner, settings, checkpoints: self.checkpoints()? }))
    }

    fn checkpoints(&self) -> Result<Option<GuestCheckpointSettings>, Error> {
        let usage = |what: String| Err(Error::Usage(what));
        let interval = self.checkpoint_interval.unwrap_or(CHECKPOINT_INTERVAL);
        match &self.checkpoints {
            None if self.checkpoint_interval.is_some() => {
                usage("--checkpoint-interval is nothing without --checkpoints PLACE; add that".to_owned())
            }
            None => Ok(None),
            Some(_) if interval < CHECKPOINT_INTERVAL_MIN => usage(format!(
                "--checkpoint-interval cannot be less than {}ms; 60s is usual",
                CHECKPOINT_INTERVAL_MIN.as_millis()
            )),
            Some(place) if StorageScheme::of(place).is_some() => {
                Ok(Some(GuestCheckpointSettings { directory: place.clone(), interval }))
            }
            Some(place) if place.to_string_lossy().contains("://") => usage(format!(
                "--checkpoints {} is in no store that is known; give a directory, or a place that begins with s3://, gs://, \
                 abfss:// or hdfs://",
                place.display()
            )),
            Some(place) => {
                let unknown = |error| Error::Usage(format!("cannot find the current directory: {error}"));
                let directory = std::path::absolute(place).map_err(unknown)?;
                Ok(Some(GuestCheckpointSettings { directory, interval }))
            }
        }
    }

    fn settings(&self) -> Result<BTreeMap<String, String>, Error> {
        let parse = |text: &String| match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
            _ => Err(Error::Usage(format!("--on-conf {text:?} is no setting; write it as KEY=VALUE"))),
        };
        self.on_conf.iter().map(parse).collect()
    }

    /// Refuses flags that are about our own clusters, which another engine makes nothing of. A cluster that
    /// only a variable names is not meant.
    pub(super) fn beside(
        &self,
        cluster: &ClusterArguments,
        slots: Option<u32>,
    ) -> Result<Option<ClusterPlace>, Error> {
        let given = cluster.named().then_some("--cluster").or_else(|| cluster.cluster_only());
        let given = given.or(slots.map(|_| "--slots"));
        match given {
            Some(flag) => Err(Error::Usage(format!(
                "{flag} is nothing to the engine that --on names; leave one of them out"
            ))),
            None => Ok(None),
        }
    }
}

/// An engine that runs jobs of this program; it ends with this value.
pub(super) struct Engine {
    engine: GuestEngine,
    paths: TypedPaths,
}

impl Engine {
    pub(super) fn start(
        kind: &EngineKind,
        name: &str,
        attempts_max: u32,
        (progress, quiet): (ProgressMode, bool),
    ) -> Result<Engine, Error> {
        let paths = TypedPaths::from_here()?;
        let EngineKind { settings, checkpoints, .. } = kind;
        let (settings, checkpoints) = (settings.clone(), checkpoints.clone());
        let settings = GuestEngineSettings { name: name.to_owned(), settings, checkpoints, progress, quiet };
        let engine = match &kind.runner {
            Runner::Executed(program) => GuestEngine::start(settings, |directory| {
                let mut command = Command::new(program);
                command.arg(directory);
                Ok(command)
            })?,
            Runner::Hadoop(hadoop) => {
                let installed = hadoop.find().map_err(Error::Usage)?;
                GuestEngine::start(settings, |directory| installed.jobs(directory))?
            }
            Runner::Spark(spark) => {
                let submit = spark.submit().map_err(Error::Usage)?;
                GuestEngine::start(settings, |directory| {
                    spark.command(&submit, name, attempts_max, &kind.settings, directory)
                })?
            }
        };
        Ok(Engine { engine, paths })
    }

    /// Runs a job to its end. What is said of its paths is said as they were typed.
    pub(super) fn run(
        &mut self,
        mut plan: JobPlan,
        files: &BTreeMap<String, PathBuf>,
    ) -> Result<JobReport, Error> {
        let typed = plan.output.clone();
        let relative = self.paths.make_absolute(&mut plan);
        match self.engine.run(&plan, files) {
            Ok(report) => Ok(JobReport { output: typed, ..report }),
            Err(error) => Err(Error::from(self.paths.as_typed(error, relative))),
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
        engine: EngineArguments,
        #[command(flatten)]
        cluster: ClusterArguments,
    }

    fn refused(arguments: &[&str]) -> String {
        let line = Line::try_parse_from([&["program"], arguments].concat())
            .unwrap_or_else(|error| panic!("{error}"));
        let kind = line.engine.kind().and_then(|_| line.engine.beside(&line.cluster, None));
        let error = kind.expect_err("it makes no sense");
        assert_eq!(error.exit_status(), 2);
        error.to_string()
    }

    #[test]
    fn no_flag_is_without_effect() {
        for (arguments, says) in [
            (&["--on-conf", "a=b"][..], "--on-conf is for another engine; name one with --on"),
            (&["--on-submit", "x"], "--on-submit is for another engine; name one with --on"),
            (&["--on", "exec:x", "--on-submit", "y"], "--on-submit is for Spark and Hadoop; leave it out"),
            (&["--checkpoints", "c"], "--checkpoints is for another engine; name one with --on"),
            (
                &["--checkpoint-interval", "1s"],
                "--checkpoint-interval is for another engine; name one with --on",
            ),
            (
                &["--on", "local", "--checkpoint-interval", "1s"],
                "--checkpoint-interval is nothing without --checkpoints PLACE; add that",
            ),
            (
                &["--on", "local", "--checkpoints", "c", "--checkpoint-interval", "1ms"],
                "--checkpoint-interval cannot be less than 100ms; 60s is usual",
            ),
            (
                &["--on", "local", "--checkpoints", "ftp://b/c"],
                "--checkpoints ftp://b/c is in no store that is known; give a directory, or a place that begins with s3://, \
                 gs://, abfss:// or hdfs://",
            ),
            (&["--on", "exec:"], "--on exec: names no program; give --on exec:PROGRAM"),
            (&["--on", "local", "--on-conf", "x"], "--on-conf \"x\" is no setting; write it as KEY=VALUE"),
            (
                &["--on", "local", "--queue", "a"],
                "--queue is nothing to the engine that --on names; leave one of them out",
            ),
            (
                &["--on", "local", "--cluster", "a"],
                "--cluster is nothing to the engine that --on names; leave one of them out",
            ),
        ] {
            assert_eq!(refused(arguments), says);
        }
    }

    #[test]
    fn a_place_in_a_store_stays_as_it_is_and_a_directory_is_found_from_anywhere() {
        let place = |given: &str| {
            let line = ["program", "--on", "local", "--checkpoints", given];
            let line = Line::try_parse_from(line).unwrap_or_else(|error| panic!("{error}"));
            let kind = line.engine.kind().unwrap_or_else(|error| panic!("{error}")).expect("an engine");
            kind.checkpoints.expect("it is given").directory
        };
        assert_eq!(place("s3://b/c"), PathBuf::from("s3://b/c"));
        assert!(place("c").is_absolute());
    }

    #[test]
    fn without_the_flag_there_is_no_engine() {
        assert!(matches!(EngineArguments::default().kind(), Ok(None)));
    }
}
