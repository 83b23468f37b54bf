//! One job on an engine, from the claim of its output to the commit, with signal handling.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use napreduce_engine::JobId;
use napreduce_local::process::Interrupts;
use napreduce_local::{GuestOutput, ProgressDisplay, interrupted, next_job};
use napreduce_protocol::{JobError, JobPlan, JobProgress, JobReport, PhaseProgress};
use napreduce_task::{signal_name, task_process_requested};
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::checkpoints::SubmissionCheckpoints;
use super::directory::Submission;
use super::engine::GuestEngine;
use super::outcome::GuestOutcome;
use crate::forms::{EngineEvent, PendingPart, PhaseCounts};
use crate::task::guest_requested;

/// Time limit for the engine to end a cancelled job.
const CANCEL_MAX: Duration = Duration::from_secs(10);

/// Failed attempts, as far as the engine counts them.
struct Failed {
    maps: u64,
    reduces: u64,
}

/// A job that an engine runs.
struct Running<'e> {
    engine: &'e mut GuestEngine,
    number: u32,
    job: JobId,
    plan: &'e JobPlan,
    outcome: GuestOutcome,
    display: ProgressDisplay,
}

impl GuestEngine {
    /// Runs a job to its end, blocking. Its paths must be visible to all hosts of the engine; guests find
    /// `files` by name. Meanwhile SIGINT, SIGTERM and SIGHUP cancel the job; a second one ends the program at
    /// once.
    ///
    /// # Errors
    /// See [`JobError`]. Unless the job succeeded, no part of it is left in the output directory.
    pub fn run(
        &mut self,
        plan: &JobPlan,
        files: &BTreeMap<String, PathBuf>,
    ) -> Result<JobReport, JobError> {
        if task_process_requested() || guest_requested() {
            let why = "this is a task process; call task_process_main before anything else in main";
            return Err(JobError::Plan(why.to_owned()));
        }
        plan.check().map_err(JobError::Plan)?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| JobError::io("start the runtime", error))?;
        runtime.block_on(self.run_claimed(plan, files))
    }

    async fn run_claimed(
        &mut self,
        plan: &JobPlan,
        files: &BTreeMap<String, PathBuf>,
    ) -> Result<JobReport, JobError> {
        let began = Instant::now();
        let unhandled = |error| JobError::io("handle signals", error);
        let mut interrupts = Interrupts::install().map_err(unhandled)?;
        let job = next_job();
        // Removed when all processes of the job have ended.
        let checkpoints = SubmissionCheckpoints::make(self.settings.checkpoints.as_ref(), plan)?;
        let output = GuestOutput::claim(job, plan)?;
        self.jobs += 1;
        let number = self.jobs;
        let checkpoints_of_guests = checkpoints.as_ref().map(|made| made.0.clone());
        let requested = output.make_parts().and_then(|parts| {
            let checkpoints = checkpoints_of_guests;
            self.directory.request(Submission {
                number,
                job,
                plan,
                checkpoints,
                files,
                parts: &parts,
            })
        });
        if let Err(error) = requested {
            output.discard()?;
            return Err(error);
        }
        let display =
            ProgressDisplay::new(self.settings.progress, self.settings.quiet, Duration::ZERO);
        let outcome = GuestOutcome::new(job, plan);
        let mut running = Running {
            engine: self,
            number,
            job,
            plan,
            outcome,
            display,
        };
        let signal = tokio::select! {
            ended = running.follow() => {
                running.display.end();
                let ended = running.settle(ended, output, began);
                return match interrupts.arrived() {
                    Some(signal) => Err(interrupted(signal, &plan.output.display().to_string(), ended)),
                    None => ended,
                };
            }
            signal = interrupts.arrival() => signal.map_err(unhandled)?,
        };
        let reason = format!(
            "interrupted by {}",
            signal_name(signal).unwrap_or("a signal")
        );
        running.cancel().await;
        running.display.end();
        let ended = running.settle(Err(JobError::Killed { job, reason }), output, began);
        Err(interrupted(
            signal,
            &plan.output.display().to_string(),
            ended,
        ))
    }
}

impl Running<'_> {
    /// Handles events until the engine has completed the job.
    async fn follow(&mut self) -> Result<Failed, JobError> {
        loop {
            match self.engine.events.recv().await {
                None => {
                    let ended = self.engine_ended();
                    return Err(self.failed(ended));
                }
                Some(Err(why)) => {
                    return Err(self.failed(format!("the engine sent an invalid event: {why}")));
                }
                // An event of a cancelled job.
                Some(Ok(event)) if event.number() != self.number => {}
                Some(Ok(EngineEvent::Progress { maps, reduces, .. })) => self.show(maps, reduces),
                Some(Ok(EngineEvent::Report { report, .. })) => {
                    self.outcome.take(*report).map_err(|why| self.failed(why))?;
                }
                Some(Ok(EngineEvent::Failed { task, reason, .. })) => {
                    let reason = reason.trim_end();
                    return Err(self.failed(match task {
                        Some(task) => format!("{task}: {reason}"),
                        None => reason.to_owned(),
                    }));
                }
                Some(Ok(EngineEvent::Done {
                    failed_maps,
                    failed_reduces,
                    ..
                })) => {
                    self.outcome.check().map_err(|why| self.failed(why))?;
                    return Ok(Failed {
                        maps: failed_maps,
                        reduces: failed_reduces,
                    });
                }
            }
        }
    }

    fn failed(&self, reason: String) -> JobError {
        JobError::Failed {
            job: self.job,
            reason: format!("{} failed: {reason}", self.job),
            failure: None,
        }
    }

    /// Returns the error for an engine that has exited; its status may arrive slightly after the end of its
    /// output.
    fn engine_ended(&mut self) -> String {
        let began = Instant::now();
        let status = loop {
            match self.engine.ended() {
                Some(status) => break status.to_string(),
                None if began.elapsed() > Duration::from_secs(1) => {
                    break "closed its output".to_owned();
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        format!(
            "the engine ended ({status}) before the job; its last output: {}",
            self.engine.directory.last_output()
        )
    }

    fn show(&mut self, maps: PhaseCounts, reduces: PhaseCounts) {
        let phase = |tasks: u32, PhaseCounts { done, running }: PhaseCounts| PhaseProgress {
            tasks,
            done: done.min(tasks),
            running,
            ..PhaseProgress::default()
        };
        let tasks = u32::try_from(self.plan.splits.len()).unwrap_or(u32::MAX);
        let progress = JobProgress {
            map: phase(tasks, maps),
            reduce: phase(self.plan.reduces, reduces),
            left: None,
        };
        self.display.show(&progress);
    }

    /// Cancels the job; stops the engine with all its processes if that takes too long.
    async fn cancel(&mut self) {
        let number = self.number;
        let engine = &mut *self.engine;
        let asked = engine.directory.cancel(number);
        let ends = |event: &Result<EngineEvent, String>| match event {
            Ok(event @ (EngineEvent::Failed { .. } | EngineEvent::Done { .. })) => {
                event.number() == number
            }
            _ => false,
        };
        let events = &mut engine.events;
        let ended = timeout(CANCEL_MAX, async {
            while let Some(event) = events.recv().await {
                if ends(&event) {
                    break;
                }
            }
        });
        let ended = ended.await;
        if asked.is_err() || ended.is_err() {
            engine.end_at_once();
        }
    }

    /// Commits the parts, or discards all of them.
    fn settle(
        &self,
        ended: Result<Failed, JobError>,
        output: GuestOutput,
        began: Instant,
    ) -> Result<JobReport, JobError> {
        let failed = match ended {
            Ok(failed) => failed,
            Err(error) => {
                output.discard()?;
                return Err(error);
            }
        };
        let written = self.outcome.parts().map(|(attempt, part)| {
            let PendingPart::File(path) = &part.pending;
            (attempt, path.clone(), part.output())
        });
        let counters = self.outcome.counters(failed.maps, failed.reduces);
        output.commit(&self.plan.name, counters, written.collect(), began)
    }
}
