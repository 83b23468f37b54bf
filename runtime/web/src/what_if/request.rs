//! Checks a what-if request and builds the command line of `nap sim`. Invalid values are refused before the
//! child is started, so that no value can become a flag or another path.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use napreduce_engine::JobId;
use napreduce_protocol::{JobPhase, JobSummary};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Limit of tasks in the selected jobs.
const TASKS_MAX: u64 = 200_000;
const TABLES_BYTES_MAX: usize = 32 << 10;
/// Tables that a configuration may contain; the others name files and addresses.
const TABLES: [&str; 2] = ["scheduler", "preemption"];

/// The jobs to simulate, and the schedulers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhatIfRequest {
    /// Directory of the history.
    pub history: PathBuf,
    pub window: Window,
    /// Only these jobs; empty for all.
    pub jobs: Vec<JobId>,
    /// In addition to the recorded one.
    pub schedulers: Vec<String>,
    /// The tables of schedulers and preemption in TOML; `None` for those of the cluster.
    pub configuration: Option<String>,
}

/// Bounds of the submission time in milliseconds since 1970; the upper one is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub from_millis: Option<u64>,
    pub until_millis: Option<u64>,
}

/// A request that is refused before a simulation starts.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestError {
    #[error("unknown scheduler {0:?}; expected {1}")]
    Scheduler(String, String),
    #[error("`from` ({0}) must be before `until` ({1})")]
    Window(u64, u64),
    #[error("{0} is out of range; expected milliseconds since 1970")]
    Moment(u64),
    #[error(
        "configuration has more than {TABLES_BYTES_MAX} bytes; remove the tables of unused schedulers"
    )]
    TooLong,
    #[error("configuration is not valid TOML: {0}")]
    NotToml(String),
    #[error("unknown table {0:?} in configuration; expected [scheduler.NAME] or [preemption]")]
    OtherTable(String),
    #[error("no job submitted in this window has succeeded; choose another window")]
    NoJobs,
    #[error("{0} was not submitted in this window or has not succeeded")]
    NoSuchJob(JobId),
    #[error("the selected jobs have {0} tasks, more than {TASKS_MAX}; choose a shorter window")]
    TooManyTasks(u64),
    #[error("the path of the history is not UTF-8; rename the directory")]
    Directory,
}

impl RequestError {
    /// Whether the request itself is invalid (400), and does not merely fail on this history (409).
    pub fn is_bad_request(&self) -> bool {
        !matches!(
            self,
            RequestError::NoJobs | RequestError::TooManyTasks(_) | RequestError::Directory
        )
    }
}

impl WhatIfRequest {
    /// Checks the request against the known schedulers and jobs, and removes duplicate schedulers.
    pub fn checked(mut self, known: &[String], jobs: &[JobSummary]) -> Result<Self, RequestError> {
        let mut named: Vec<String> = Vec::new();
        for name in self.schedulers {
            if !known.contains(&name) {
                return Err(RequestError::Scheduler(name, known.join(", ")));
            }
            if !named.contains(&name) {
                named.push(name);
            }
        }
        self.schedulers = named;
        self.window.check()?;
        self.configuration.as_deref().map_or(Ok(()), check_tables)?;
        let taken = self.window.taken(jobs);
        if let Some(absent) = self
            .jobs
            .iter()
            .find(|job| !taken.iter().any(|taken| taken.job == **job))
        {
            return Err(RequestError::NoSuchJob(*absent));
        }
        let selected = taken
            .iter()
            .filter(|taken| self.jobs.is_empty() || self.jobs.contains(&taken.job));
        let tasks = selected
            .map(|taken| tasks_of(taken))
            .reduce(u64::saturating_add);
        let tasks = tasks.ok_or(RequestError::NoJobs)?;
        if tasks > TASKS_MAX {
            return Err(RequestError::TooManyTasks(tasks));
        }
        self.recorded().map(|_| self)
    }

    /// The value of `--recorded`.
    fn recorded(&self) -> Result<String, RequestError> {
        let directory = self.history.to_str().ok_or(RequestError::Directory)?;
        let Window {
            from_millis,
            until_millis,
        } = self.window;
        if from_millis.is_none() && until_millis.is_none() {
            return Ok(directory.to_owned());
        }
        let written = |bound: Option<u64>| bound.map_or(Ok(String::new()), moment);
        Ok(format!(
            "{directory}@{}..{}",
            written(from_millis)?,
            written(until_millis)?
        ))
    }

    /// The arguments of `nap sim`, which writes histories to `record` and its progress to `progress`. Each value
    /// is joined to its flag with `=`, so that it cannot be parsed as a flag.
    pub fn line(
        &self,
        tables: Option<&Path>,
        record: &Path,
        progress: &Path,
    ) -> Result<Vec<OsString>, RequestError> {
        let valued = |flag: &str, value: &Path| {
            let mut word = OsString::from(flag);
            word.push(value);
            word
        };
        let mut line = vec![OsString::from(format!("--recorded={}", self.recorded()?))];
        if !self.schedulers.is_empty() {
            line.push(format!("--scheduler={}", self.schedulers.join(",")).into());
        }
        if !self.jobs.is_empty() {
            let jobs: Vec<String> = self.jobs.iter().map(JobId::to_string).collect();
            line.push(format!("--job={}", jobs.join(",")).into());
        }
        line.extend(tables.map(|file| valued("--configuration=", file)));
        line.push(valued("--record=", record));
        line.push(valued("--progress-file=", progress));
        line.push("--format=json".into());
        Ok(line)
    }
}

impl Window {
    fn check(self) -> Result<(), RequestError> {
        for bound in [self.from_millis, self.until_millis].into_iter().flatten() {
            moment(bound)?;
        }
        match (self.from_millis, self.until_millis) {
            (Some(from), Some(until)) if from >= until => Err(RequestError::Window(from, until)),
            _ => Ok(()),
        }
    }

    /// The jobs that can be simulated: task durations are known only for jobs that succeeded.
    fn taken(self, jobs: &[JobSummary]) -> Vec<&JobSummary> {
        let window = self.from_millis.unwrap_or(0)..self.until_millis.unwrap_or(u64::MAX);
        let is_taken = |job: &&JobSummary| {
            job.phase == JobPhase::Succeeded && window.contains(&job.submitted_millis)
        };
        jobs.iter().filter(is_taken).collect()
    }
}

fn tasks_of(job: &JobSummary) -> u64 {
    u64::from(job.progress.map.tasks) + u64::from(job.progress.reduce.tasks)
}

/// Formats a time as `nap sim` parses it.
fn moment(millis: u64) -> Result<String, RequestError> {
    let stamp = i64::try_from(millis)
        .ok()
        .and_then(|millis| Timestamp::from_millisecond(millis).ok());
    stamp
        .map(|stamp| stamp.to_string())
        .ok_or(RequestError::Moment(millis))
}

fn check_tables(text: &str) -> Result<(), RequestError> {
    if text.len() > TABLES_BYTES_MAX {
        return Err(RequestError::TooLong);
    }
    let tables: toml::Table =
        toml::from_str(text).map_err(|error| RequestError::NotToml(error.message().to_owned()))?;
    match tables.keys().find(|key| !TABLES.contains(&key.as_str())) {
        Some(other) => Err(RequestError::OtherTable(other.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::{JobProgress, PhaseProgress};

    use super::*;

    fn job(submitted_millis: u64, tasks: u32, phase: JobPhase) -> JobSummary {
        // Submitted at second N, the job has ID N.
        let job = JobId(submitted_millis as u32 / 1_000);
        let map = PhaseProgress {
            tasks,
            ..PhaseProgress::default()
        };
        JobSummary {
            job,
            name: "a".to_owned(),
            user: "ada".to_owned(),
            queue: "default".to_owned(),
            priority: 0,
            phase,
            reason: None,
            submitted_millis,
            ended_millis: Some(submitted_millis + 1),
            progress: JobProgress {
                map,
                ..JobProgress::default()
            },
            output: "out".into(),
            unrecorded: None,
        }
    }

    fn request() -> WhatIfRequest {
        WhatIfRequest {
            history: "/srv/nap".into(),
            window: Window {
                from_millis: None,
                until_millis: None,
            },
            jobs: Vec::new(),
            schedulers: vec!["fair".to_owned()],
            configuration: None,
        }
    }

    fn check(request: WhatIfRequest) -> Result<WhatIfRequest, RequestError> {
        let known = ["fair", "fifo"].map(str::to_owned);
        let jobs = [
            job(1_000, 150_000, JobPhase::Succeeded),
            job(2_000, 60_000, JobPhase::Succeeded),
            job(3_000, 9, JobPhase::Failed),
        ];
        request.checked(&known, &jobs)
    }

    #[test]
    fn line_contains_exactly_the_requested_flags() {
        let window = Window {
            from_millis: Some(1_790_000_000_001),
            until_millis: None,
        };
        let asked = WhatIfRequest {
            window,
            schedulers: vec!["fair".to_owned(), "fifo".to_owned()],
            ..request()
        };
        let line = asked.line(
            Some(Path::new("/own/tables.toml")),
            Path::new("/own/runs"),
            Path::new("/own/p"),
        );
        let expected = [
            "--recorded=/srv/nap@2026-09-21T14:13:20.001Z..",
            "--scheduler=fair,fifo",
            "--configuration=/own/tables.toml",
            "--record=/own/runs",
            "--progress-file=/own/p",
            "--format=json",
        ];
        assert_eq!(line.expect("a line"), expected.map(OsString::from));
        let jobs = vec![JobId(4), JobId(7)];
        let chosen = WhatIfRequest {
            schedulers: Vec::new(),
            jobs,
            ..request()
        };
        let line = chosen
            .line(None, Path::new("/own/runs"), Path::new("/own/p"))
            .expect("a line");
        let expected = [
            "--recorded=/srv/nap",
            "--job=job_0004,job_0007",
            "--record=/own/runs",
            "--progress-file=/own/p",
            "--format=json",
        ];
        assert_eq!(line, expected.map(OsString::from));
    }

    #[test]
    fn checked_refuses_invalid_requests() {
        type Change = fn(&mut WhatIfRequest);
        fn until(until: u64) -> Window {
            Window {
                from_millis: None,
                until_millis: Some(until),
            }
        }
        let one = check(WhatIfRequest {
            window: until(1_001),
            ..request()
        })
        .expect("valid request");
        assert_eq!(one.schedulers, ["fair"]);
        let refused = |change: Change| {
            let mut asked = WhatIfRequest {
                window: until(1_001),
                ..request()
            };
            change(&mut asked);
            check(asked).expect_err("invalid request").to_string()
        };
        let cases: [(Change, &str); 9] = [
            (
                |asked| asked.jobs = vec![JobId(2)],
                "job_0002 was not submitted in this window",
            ),
            (
                |asked| asked.schedulers = vec!["--plot=x".to_owned()],
                "unknown scheduler \"--plot=x\"",
            ),
            (
                |asked| asked.window = until(u64::MAX),
                "18446744073709551615 is out of range",
            ),
            (
                |asked| asked.window.from_millis = Some(1_001),
                "`from` (1001) must be before `until` (1001)",
            ),
            (
                |asked| asked.window = until(1_000),
                "no job submitted in this window has succeeded",
            ),
            (
                |asked| asked.window = until(2_001),
                "the selected jobs have 210000 tasks",
            ),
            (
                |asked| asked.configuration = Some("[fair".to_owned()),
                "configuration is not valid TOML",
            ),
            (
                |asked| asked.configuration = Some("[worker]".to_owned()),
                "unknown table \"worker\" in configuration",
            ),
            (
                |asked| asked.configuration = Some(" ".repeat(40_000)),
                "configuration has more than 32768",
            ),
        ];
        for (change, words) in cases {
            assert!(refused(change).starts_with(words), "{}", refused(change));
        }
        let all = Window {
            from_millis: None,
            until_millis: None,
        };
        assert!(
            check(WhatIfRequest {
                window: all,
                jobs: vec![JobId(2)],
                ..request()
            })
            .is_ok()
        );
        let tables = "[scheduler.fair]\npreemption = true\n[preemption]\n".to_owned();
        assert!(
            check(WhatIfRequest {
                window: until(1_001),
                configuration: Some(tables),
                ..request()
            })
            .is_ok()
        );
    }
}
