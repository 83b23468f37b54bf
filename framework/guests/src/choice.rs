//! Choice of the engine for `--on`, with its flags. Every flag must have an effect.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use napreduce_local::ProgressMode;
use napreduce_protocol::{JobError, StorageScheme};

use crate::spark::Spark;
use crate::submit::{GuestCheckpointSettings, GuestEngine, GuestEngineSettings};

/// Prefix of `--on` for a custom engine program.
const EXEC_PREFIX: &str = "exec:";
/// Default and maximum interval of checkpoints of guests.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(60);
const CHECKPOINT_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The engine flags as given.
#[derive(Debug, Clone, Copy)]
pub struct EngineFlags<'a> {
    pub on: &'a str,
    /// Each as KEY=VALUE.
    pub on_conf: &'a [String],
    pub on_submit: Option<&'a Path>,
    pub checkpoints: Option<&'a Path>,
    pub checkpoint_interval: Option<Duration>,
}

/// An engine, and how it is started.
#[derive(Debug)]
pub struct EngineKind {
    runner: Runner,
    settings: BTreeMap<String, String>,
    checkpoints: Option<GuestCheckpointSettings>,
}

#[derive(Debug)]
enum Runner {
    Spark(Spark),
    Program(PathBuf),
}

/// The reason why an engine was not started.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// It is not on this machine; the text contains a remedy.
    #[error("{0}")]
    NotFound(String),
    #[error(transparent)]
    Job(#[from] JobError),
}

impl EngineKind {
    /// Returns the engine that the flags select.
    ///
    /// # Errors
    /// Fails if the flags are invalid.
    pub fn of(flags: &EngineFlags<'_>) -> Result<EngineKind, String> {
        let EngineFlags { on, on_submit, .. } = *flags;
        let settings = settings(flags.on_conf)?;
        let runner = match on.strip_prefix(EXEC_PREFIX) {
            Some("") => return Err("--on exec: has no program; use --on exec:PROGRAM".to_owned()),
            Some(_) if on_submit.is_some() => {
                return Err(
                    "--on-submit has no effect with --on exec:PROGRAM; remove it".to_owned(),
                );
            }
            Some(program) => Runner::Program(program.into()),
            None => Runner::Spark(Spark::of(on, on_submit.map(Path::to_owned), &settings)?),
        };
        Ok(EngineKind {
            runner,
            settings,
            checkpoints: checkpoints(flags)?,
        })
    }

    /// Starts the engine for the jobs of the program of this name.
    ///
    /// # Errors
    /// Fails if the engine is missing or cannot be started.
    pub fn start(
        &self,
        name: &str,
        attempts_max: u32,
        progress: ProgressMode,
        quiet: bool,
    ) -> Result<GuestEngine, EngineError> {
        let EngineKind {
            settings,
            checkpoints,
            ..
        } = self;
        let settings = settings.clone();
        let checkpoints = checkpoints.clone();
        let settings = GuestEngineSettings {
            name: name.to_owned(),
            settings,
            checkpoints,
            progress,
            quiet,
        };
        let engine = match &self.runner {
            Runner::Program(program) => GuestEngine::start(settings, |directory| {
                let mut command = Command::new(program);
                command.arg(directory);
                Ok(command)
            })?,
            Runner::Spark(spark) => {
                let submit = spark.submit().map_err(EngineError::NotFound)?;
                GuestEngine::start(settings, |directory| {
                    spark.command(&submit, name, attempts_max, &self.settings, directory)
                })?
            }
        };
        Ok(engine)
    }
}

fn settings(given: &[String]) -> Result<BTreeMap<String, String>, String> {
    let parse = |text: &String| match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("--on-conf {text:?}: expected KEY=VALUE")),
    };
    given.iter().map(parse).collect()
}

fn checkpoints(flags: &EngineFlags<'_>) -> Result<Option<GuestCheckpointSettings>, String> {
    let interval = flags.checkpoint_interval.unwrap_or(CHECKPOINT_INTERVAL);
    match flags.checkpoints {
        None if flags.checkpoint_interval.is_some() => Err(
            "--checkpoint-interval has no effect without --checkpoints; add --checkpoints PLACE"
                .to_owned(),
        ),
        None => Ok(None),
        Some(_) if interval < CHECKPOINT_INTERVAL_MIN => Err(format!(
            "--checkpoint-interval must be at least {}ms (default 60s)",
            CHECKPOINT_INTERVAL_MIN.as_millis()
        )),
        Some(place) if StorageScheme::from_path(place).is_some() => {
            Ok(Some(GuestCheckpointSettings {
                directory: place.to_owned(),
                interval,
            }))
        }
        Some(place) if place.to_string_lossy().contains("://") => Err(format!(
            "--checkpoints {}: unknown store; use a directory, or a name that begins with s3://, gs://, \
             abfss:// or hdfs://",
            place.display()
        )),
        Some(place) => {
            let directory = std::path::absolute(place)
                .map_err(|error| format!("cannot find the current directory: {error}"))?;
            Ok(Some(GuestCheckpointSettings {
                directory,
                interval,
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: EngineFlags<'static> = EngineFlags {
        on: "local",
        on_conf: &[],
        on_submit: None,
        checkpoints: None,
        checkpoint_interval: None,
    };

    #[test]
    fn flags_without_effect_are_rejected() {
        let place = |place: &'static str| Some(Path::new(place));
        let second = Some(Duration::from_secs(1));
        for (flags, says) in [
            (
                EngineFlags {
                    on: "exec:x",
                    on_submit: place("y"),
                    ..LOCAL
                },
                "--on-submit has no effect with --on exec:PROGRAM; remove it",
            ),
            (
                EngineFlags {
                    checkpoint_interval: second,
                    ..LOCAL
                },
                "--checkpoint-interval has no effect without --checkpoints; add --checkpoints PLACE",
            ),
            (
                EngineFlags {
                    checkpoints: place("c"),
                    checkpoint_interval: Some(Duration::from_millis(1)),
                    ..LOCAL
                },
                "--checkpoint-interval must be at least 100ms (default 60s)",
            ),
            (
                EngineFlags {
                    checkpoints: place("ftp://b/c"),
                    ..LOCAL
                },
                "--checkpoints ftp://b/c: unknown store; use a directory, or a name that begins with s3://, \
                 gs://, abfss:// or hdfs://",
            ),
            (
                EngineFlags {
                    on: "exec:",
                    ..LOCAL
                },
                "--on exec: has no program; use --on exec:PROGRAM",
            ),
            (
                EngineFlags {
                    on_conf: &["x".to_owned()],
                    ..LOCAL
                },
                "--on-conf \"x\": expected KEY=VALUE",
            ),
        ] {
            assert_eq!(EngineKind::of(&flags).expect_err("it makes no sense"), says);
        }
    }

    #[test]
    fn store_uri_is_kept_and_directory_becomes_absolute() {
        let place = |given: &str| {
            let flags = EngineFlags {
                checkpoints: Some(Path::new(given)),
                ..LOCAL
            };
            let kind = EngineKind::of(&flags).unwrap_or_else(|error| panic!("{error}"));
            kind.checkpoints.expect("it is given").directory
        };
        assert_eq!(place("s3://b/c"), PathBuf::from("s3://b/c"));
        assert!(place("c").is_absolute());
    }
}
