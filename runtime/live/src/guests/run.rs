//! One job on an engine, from the claim of its output to the commit.
//!
//! Owns the order of things, and what a signal to this program means. Does not own the steps of claim and
//! commit (`output`), which are those of every job.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use napreduce_engine::JobId;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{
    JobError, JobPlan, JobProgress, JobReport, PartOutput, PhaseProgress, StorageScheme,
};
use napreduce_task::{Interrupts, signal_name, task_process_requested};
use tokio::runtime::Builder;
use tokio::time::{interval, timeout};

use super::checkpoints::SubmissionCheckpoints;
use super::engine::GuestEngine;
use super::events::{EngineEvent, PhaseCounts};
use super::outcome::GuestOutcome;
use crate::embedded::{interrupted, next_job};
use crate::output::{
    ClaimRequest, DirectoryClaim, DirectoryLease, Disk, Manifest, Owner, Surroundings, Trouble, check_place,
    commit_to_directory, files_read, make_guests, promote_guest,
};
use crate::progress::ProgressDisplay;
use crate::random::random_u128;

/// How often other hosts are told that the claim is alive; a quarter of the time after which they
/// would take it.
const RENEWAL: Duration = Duration::from_secs(15);
/// How long an engine may take to end a job that is cancelled.
const CANCEL_MAX: Duration = Duration::from_secs(10);
/// How long it is tried to commit, and how long is waited in between.
const COMMIT_PATIENCE: Duration = Duration::from_secs(60);
const COMMIT_WAIT: Duration = Duration::from_millis(250);

/// How many attempts have failed, as far as the engine counts them.
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
    /// Runs a job to its end, blocking. Its paths have to be those that every host of the engine sees; guests
    /// find these files by name. While it runs, SIGINT, SIGTERM and SIGHUP end it; a second one ends the
    /// program at once.
    ///
    /// # Errors
    /// See [`JobError`]. Unless the job succeeded, no part of it is left in the output directory.
    pub fn run(&mut self, plan: &JobPlan, files: &BTreeMap<String, PathBuf>) -> Result<JobReport, JobError> {
        if task_process_requested() {
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
        // Removed when nothing of the job runs any more.
        let checkpoints = SubmissionCheckpoints::make(self.settings.checkpoints.as_ref(), plan)?;
        let claim = take_claim(job, plan)?;
        self.jobs += 1;
        let number = self.jobs;
        let saves = checkpoints.as_ref().map(|made| made.0.clone());
        let told = make_guests(&claim)
            .and_then(|parts| self.directory.request((number, job), (plan, saves), files, &parts));
        if let Err(error) = told {
            discard(claim, &plan.output)?;
            return Err(error);
        }
        let display = ProgressDisplay::new(self.settings.progress, self.settings.quiet);
        let outcome = GuestOutcome::new(job, plan);
        let mut running = Running { engine: self, number, job, plan, outcome, display };
        let lease = DirectoryLease::of(&claim);
        let signal = tokio::select! {
            ended = running.follow(&lease) => {
                running.display.end();
                let ended = running.settle(ended, claim, began);
                return match interrupts.arrived() {
                    Some(signal) => Err(interrupted(signal, &plan.output.display().to_string(), ended)),
                    None => ended,
                };
            }
            signal = interrupts.arrival() => signal.map_err(unhandled)?,
        };
        let reason = format!("interrupted by {}", signal_name(signal).unwrap_or("a signal"));
        running.cancel().await;
        running.display.end();
        let ended = running.settle(Err(JobError::Killed { job, reason }), claim, began);
        Err(interrupted(signal, &plan.output.display().to_string(), ended))
    }
}

impl Running<'_> {
    /// Hears of the job until the engine has done it.
    async fn follow(&mut self, lease: &DirectoryLease) -> Result<Failed, JobError> {
        let mut renewal = interval(RENEWAL);
        loop {
            let event = tokio::select! {
                event = self.engine.events.recv() => event,
                _ = renewal.tick() => {
                    // What hinders it is met again, and said, by the next step of the job.
                    let _ = lease.renew();
                    continue;
                }
            };
            match event {
                None => {
                    let ended = self.engine_ended();
                    return Err(self.failed(ended));
                }
                Some(Err(why)) => {
                    return Err(self.failed(format!("the engine has said what cannot be read: {why}")));
                }
                // Of a job that was given up.
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
                Some(Ok(EngineEvent::Done { failed_maps, failed_reduces, .. })) => {
                    self.outcome.check().map_err(|why| self.failed(why))?;
                    return Ok(Failed { maps: failed_maps, reduces: failed_reduces });
                }
            }
        }
    }

    fn failed(&self, reason: String) -> JobError {
        JobError::Failed { job: self.job, reason: format!("{} failed: {reason}", self.job) }
    }

    /// What is said when the engine is gone; its status may come a little later than the end of its output.
    fn engine_ended(&mut self) -> String {
        let began = Instant::now();
        let status = loop {
            match self.engine.ended() {
                Some(status) => break status.to_string(),
                None if began.elapsed() > Duration::from_secs(1) => break "closed its output".to_owned(),
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        format!("the engine ended ({status}) before the job; it said: {}", self.engine.directory.last_words())
    }

    fn show(&mut self, maps: PhaseCounts, reduces: PhaseCounts) {
        let phase = |tasks: u32, PhaseCounts { done, running }: PhaseCounts| PhaseProgress {
            tasks,
            done: done.min(tasks),
            running,
            ..PhaseProgress::default()
        };
        let tasks = u32::try_from(self.plan.splits.len()).unwrap_or(u32::MAX);
        let progress = JobProgress { map: phase(tasks, maps), reduce: phase(self.plan.reduces, reduces) };
        self.display.show(&progress);
    }

    /// Has the engine end the job; one that does not in time is ended itself, and with it all that it runs.
    async fn cancel(&mut self) {
        let (number, engine) = (self.number, &mut *self.engine);
        let asked = engine.directory.cancel(number);
        let ends = |event: &Result<EngineEvent, String>| match event {
            Ok(event @ (EngineEvent::Failed { .. } | EngineEvent::Done { .. })) => event.number() == number,
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

    /// Commits what was handed over, or discards all of it.
    fn settle(
        &self,
        ended: Result<Failed, JobError>,
        mut claim: DirectoryClaim,
        began: Instant,
    ) -> Result<JobReport, JobError> {
        let output = &self.plan.output;
        let failed = match ended {
            Ok(failed) => failed,
            Err(error) => {
                discard(claim, output)?;
                return Err(error);
            }
        };
        let parts: Vec<(napreduce_engine::AttemptId, PartOutput)> =
            self.outcome.parts().map(|(attempt, part)| (attempt, part.output())).collect();
        let counters = self.outcome.counters(failed.maps, failed.reduces);
        let written = parts.iter().map(|(attempt, part)| (*attempt, part));
        let manifest = Manifest::of((self.job, &self.plan.name), counters, written, claim.paths());
        if let Err(trouble) = self.commit(&mut claim, &manifest) {
            let reason = trouble.in_words(output);
            return match trouble {
                Trouble::Final(_) => discard(claim, output).and(Err(self.failed(reason))),
                // It may be there in part; whoever comes next brings it to an end.
                _ => Err(self.failed(format!("its output was not committed: {reason}"))),
            };
        }
        if let Err(trouble) = claim.clean_up() {
            let left = trouble.in_words(output);
            print_error(format_args!(
                "warning: the output of {} is complete, but not all of its work is removed: {left}",
                self.job
            ));
        }
        Ok(manifest.report(began.elapsed(), output))
    }

    /// Each step can be done again, and is while its storage is away.
    fn commit(&self, claim: &mut DirectoryClaim, manifest: &Manifest) -> Result<(), Trouble> {
        let began = Instant::now();
        loop {
            let promoted =
                self.outcome.parts().try_for_each(|(attempt, part)| promote_guest(claim, attempt, part));
            match promoted.and_then(|()| commit_to_directory(claim, manifest)) {
                Err(Trouble::Passing { .. }) if began.elapsed() < COMMIT_PATIENCE => {
                    std::thread::sleep(COMMIT_WAIT)
                }
                settled => return settled,
            }
        }
    }
}

fn take_claim(job: JobId, plan: &JobPlan) -> Result<DirectoryClaim, JobError> {
    if StorageScheme::of(&plan.output).is_some() {
        let why = "what guests of another engine write goes into a directory that all of its hosts see, not into a store; give \
                   --output one";
        return Err(JobError::OutputUnusable {
            path: plan.output.display().to_string(),
            source: std::io::Error::other(why),
        });
    }
    let surroundings = Surroundings { cluster: Vec::new(), inputs: files_read(&plan.splits) };
    check_place(&plan.output, &surroundings)?;
    let submission = random_u128().map_err(|error| JobError::io("draw a random number", error))?;
    let request = ClaimRequest {
        output: &plan.output,
        job,
        extension: &plan.part_extension,
        overwrite: plan.overwrite,
        splits: &plan.splits,
        submission,
        owner: Owner::Program,
        durable: plan.durable,
    };
    DirectoryClaim::take(&Disk::default(), &request)
}

fn discard(claim: DirectoryClaim, output: &Path) -> Result<(), JobError> {
    match claim.discard() {
        // Nothing of it is left, or what is there is not its own.
        Ok(()) | Err(Trouble::Taken { .. } | Trouble::Final(_)) => Ok(()),
        Err(trouble @ Trouble::Passing { .. }) => Err(JobError::io(
            format!("remove what the job has left in {}", output.display()),
            std::io::Error::other(trouble.in_words(output)),
        )),
    }
}
