//! `--on`: running a program's jobs on an external engine. The engines are behind the feature `guests`.

#[cfg(feature = "guests")]
mod guests;
#[cfg(not(feature = "guests"))]
mod without_guests;

use std::path::PathBuf;
use std::time::Duration;

use super::cluster::ClusterArguments;
use super::error::Error;
pub(super) use engines::{Engine, EngineKind, requested, run};
#[cfg(feature = "guests")]
use guests as engines;
#[cfg(not(feature = "guests"))]
use without_guests as engines;

/// The flags that are about another engine.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub(crate) struct EngineArguments {
    /// Engine to run on: a Spark master, such as local[4], spark://HOST:7077, yarn or k8s://URL; or
    /// exec:PROGRAM, for an engine of docs/spark.md
    #[cfg_attr(feature = "cli", arg(long, hide = !cfg!(feature = "guests"), value_name = "ENGINE"))]
    on: Option<String>,

    /// Setting of that engine, such as spark.executor.memory=4g
    #[cfg_attr(feature = "cli", arg(long, hide = !cfg!(feature = "guests"), value_name = "KEY=VALUE"))]
    on_conf: Vec<String>,

    /// Path of spark-submit [default: from SPARK_HOME, PATH or the Python module pyspark]
    #[cfg_attr(feature = "cli", arg(long, hide = !cfg!(feature = "guests"), value_name = "PATH"))]
    on_submit: Option<PathBuf>,

    /// Place for checkpoints of tasks, with --on: a directory visible to every host of the engine, or a
    /// prefix in a store, such as s3://bucket/saved
    #[cfg_attr(feature = "cli", arg(long, hide = !cfg!(feature = "guests"), value_name = "PLACE"))]
    checkpoints: Option<PathBuf>,

    /// Interval of these checkpoints [default: 60s]
    #[cfg_attr(feature = "cli", arg(long, hide = !cfg!(feature = "guests"), value_name = "TIME", value_parser = napreduce_protocol::parse_time))]
    checkpoint_interval: Option<Duration>,
}

impl EngineArguments {
    /// Returns the engine to run on, if any. Fails if a flag would have no effect.
    pub(super) fn kind(&self) -> Result<Option<EngineKind>, Error> {
        let Some(on) = &self.on else {
            let given = [
                ("--on-conf", !self.on_conf.is_empty()),
                ("--on-submit", self.on_submit.is_some()),
                ("--checkpoints", self.checkpoints.is_some()),
                ("--checkpoint-interval", self.checkpoint_interval.is_some()),
            ];
            return match given.into_iter().find(|(_, given)| *given) {
                Some((flag, _)) => Err(Error::Usage(format!(
                    "{flag} has no effect without --on; name an engine with --on or remove {flag}"
                ))),
                None => Ok(None),
            };
        };
        engines::kind(on, self).map(Some)
    }

    /// Rejects flags for napreduce clusters, which have no effect on another engine. A cluster named only by
    /// an environment variable is ignored.
    pub(super) fn beside(
        &self,
        cluster: &ClusterArguments,
        slots: Option<u32>,
    ) -> Result<(), Error> {
        let given = cluster
            .named()
            .then_some("--cluster")
            .or_else(|| cluster.cluster_only());
        let given = given.or(slots.map(|_| "--slots"));
        match given {
            Some(flag) => Err(Error::Usage(format!(
                "{flag} has no effect with --on; remove one of them"
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(all(test, feature = "cli"))]
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
        let refused = match line.engine.on {
            Some(_) => line.engine.beside(&line.cluster, None).map(drop),
            None => line.engine.kind().map(drop),
        };
        let error = refused.expect_err("it makes no sense");
        assert_eq!(error.exit_status(), 2);
        error.to_string()
    }

    #[test]
    fn flags_without_effect_are_rejected() {
        for (arguments, says) in [
            (
                &["--on-conf", "a=b"][..],
                "--on-conf has no effect without --on; name an engine with --on or remove --on-conf",
            ),
            (
                &["--on-submit", "x"],
                "--on-submit has no effect without --on; name an engine with --on or remove --on-submit",
            ),
            (
                &["--checkpoints", "c"],
                "--checkpoints has no effect without --on; name an engine with --on or remove --checkpoints",
            ),
            (
                &["--checkpoint-interval", "1s"],
                "--checkpoint-interval has no effect without --on; name an engine with --on or remove --checkpoint-interval",
            ),
            (
                &["--on", "local", "--queue", "a"],
                "--queue has no effect with --on; remove one of them",
            ),
            (
                &["--on", "local", "--cluster", "a"],
                "--cluster has no effect with --on; remove one of them",
            ),
        ] {
            assert_eq!(refused(arguments), says);
        }
    }

    #[test]
    fn no_engine_without_flag() {
        assert!(matches!(EngineArguments::default().kind(), Ok(None)));
    }

    #[cfg(not(feature = "guests"))]
    #[test]
    fn engine_without_feature_is_rejected() {
        let line = Line::try_parse_from(["program", "--on", "local"])
            .unwrap_or_else(|error| panic!("{error}"));
        let error = line.engine.kind().expect_err("there is none");
        assert_eq!(error.exit_status(), 2);
        assert_eq!(
            error.to_string(),
            "--on local needs the feature `guests` of napreduce; build this program with it"
        );
    }
}
