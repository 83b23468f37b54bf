//! A job of a cluster as if it ran here: submitted, followed, and ended or left alone when somebody
//! presses Ctrl-C.
//!
//! Owns what a signal to this program means and what is said then. Does not own the conversation
//! with the coordinator.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_local::{ProgressDisplay, ProgressMode};
use napreduce_protocol::requests::KillJob;
use napreduce_protocol::{FromCoordinator, JobEnd, JobError, JobPlan, JobReport, ToCoordinator};
use napreduce_task::{Interrupts, signal_name};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::session::{Session, Trouble, receive};
use super::submission::Parcel;
use super::{ClientError, SubmitOptions};

/// The coordinator says something about a job that is followed every few seconds.
const FOLLOW_SILENCE_MAX: Duration = Duration::from_secs(30);
/// How long somebody who pressed Ctrl-C waits to hear what became of a submission that was on its way.
const LAST_WORD: Duration = Duration::from_secs(10);

/// What Ctrl-C does to a job that is followed. A second one always ends this program at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnInterrupt {
    /// It is killed, and its end awaited.
    #[default]
    Kill,
    /// It goes on without us.
    Detach,
}

/// How a job is followed.
#[derive(Debug, Clone, Default)]
pub struct FollowOptions {
    /// When progress is shown.
    pub progress: ProgressMode,
    /// Nothing but errors on standard error; wins over `progress`.
    pub quiet: bool,
    /// What Ctrl-C does.
    pub on_interrupt: OnInterrupt,
}

/// Submits a job and follows it to its end.
pub(super) async fn run(
    session: &mut Session,
    plan: JobPlan,
    submit: &SubmitOptions,
    options: &FollowOptions,
) -> Result<JobReport, JobError> {
    let mut interrupts = install()?;
    let parcel = pack(plan, submit, &mut interrupts).await?;
    let handed_in = Cell::new(false);
    let (submitted, signal) = {
        let mut sending = std::pin::pin!(parcel.send(session, &handed_in));
        tokio::select! {
            submitted = &mut sending => (submitted?, None),
            signal = interrupts.arrival() => {
                let signal = signal.map_err(|error| JobError::io("wait for signals", error))?;
                if !handed_in.get() {
                    return Err(not_submitted(signal));
                }
                let unknown = || JobError::Interrupted {
                    signal,
                    left: "it is not known whether the job was submitted; look with: nap job list".to_owned(),
                };
                let submitted = timeout(LAST_WORD, sending).await.map_err(|_| unknown())?;
                (submitted?, Some(signal))
            }
        }
    };
    match signal {
        Some(signal) => {
            let mut display = ProgressDisplay::new(options.progress, options.quiet);
            interrupted(session, submitted, signal, options, &mut display).await
        }
        None => attend(session, submitted, options, &mut interrupts).await,
    }
}

/// Reads what a job takes along. That is done on a thread of its own, so that nobody who presses Ctrl-C has
/// to wait for it.
async fn pack(
    plan: JobPlan,
    options: &SubmitOptions,
    interrupts: &mut Interrupts,
) -> Result<Parcel, JobError> {
    let given_up = Arc::new(AtomicBool::new(false));
    let (options, seen) = (options.clone(), Arc::clone(&given_up));
    let packing = spawn_blocking(move || Parcel::pack(plan, &options, &seen));
    tokio::select! {
        packed = packing => Ok(packed.map_err(|error| JobError::Internal(error.to_string()))??),
        signal = interrupts.arrival() => {
            given_up.store(true, Ordering::Relaxed);
            Err(not_submitted(signal.map_err(|error| JobError::io("wait for signals", error))?))
        }
    }
}

fn not_submitted(signal: i32) -> JobError {
    JobError::Interrupted { signal, left: "the job was not submitted".to_owned() }
}

/// Follows a job that was submitted before.
pub(super) async fn follow(
    session: &mut Session,
    job: JobId,
    options: &FollowOptions,
) -> Result<JobReport, JobError> {
    let mut interrupts = install()?;
    attend(session, job, options, &mut interrupts).await
}

fn install() -> Result<Interrupts, JobError> {
    Interrupts::install().map_err(|error| JobError::io("handle signals", error))
}

async fn attend(
    session: &mut Session,
    job: JobId,
    options: &FollowOptions,
    interrupts: &mut Interrupts,
) -> Result<JobReport, JobError> {
    let mut display = ProgressDisplay::new(options.progress, options.quiet);
    let ended = tokio::select! {
        ended = until_end(session, job, &mut display) => ended?.into_result(),
        signal = interrupts.arrival() => {
            let signal = signal.map_err(|error| JobError::io("wait for signals", error))?;
            interrupted(session, job, signal, options, &mut display).await
        }
    };
    display.end();
    match (interrupts.arrived(), ended) {
        // It came too late to do anything to this job, but it must not be lost on a driver that has
        // more to do.
        (Some(signal), Ok(report)) => Err(complete(signal, &report)),
        (_, ended) => ended,
    }
}

/// What was asked for when a signal comes.
async fn interrupted(
    session: &mut Session,
    job: JobId,
    signal: i32,
    options: &FollowOptions,
    display: &mut ProgressDisplay,
) -> Result<JobReport, JobError> {
    if options.on_interrupt == OnInterrupt::Detach {
        let left = format!("{job} goes on without this program; wait for it with: nap job wait {job}");
        return Err(JobError::Interrupted { signal, left });
    }
    let reason = format!("interrupted by {}", signal_name(signal).unwrap_or("a signal"));
    // A conversation that was broken off in the middle cannot go on.
    session.disconnect();
    match session.ask(KillJob { job, reason }).await {
        // Refused: it has ended already, as we are about to hear.
        Ok(()) | Err(ClientError::Refused { .. }) => {}
        Err(error) => {
            let left = format!("{job} may go on: {error}");
            return Err(JobError::Interrupted { signal, left });
        }
    }
    Err(match until_end(session, job, display).await?.into_result() {
        Ok(report) => complete(signal, &report),
        Err(JobError::Killed { .. } | JobError::Failed { .. }) => JobError::Interrupted {
            signal,
            left: format!("{job} was killed, nothing of it is left in its output"),
        },
        Err(other) => JobError::Interrupted { signal, left: other.to_string() },
    })
}

fn complete(signal: i32, report: &JobReport) -> JobError {
    let left = format!("the job was complete by then, its output is in {}", report.output.display());
    JobError::Interrupted { signal, left }
}

/// Shows progress until the job has ended, however often the coordinator is restarted meanwhile.
async fn until_end(
    session: &mut Session,
    job: JobId,
    display: &mut ProgressDisplay,
) -> Result<JobEnd, ClientError> {
    let request = ToCoordinator::Follow { job };
    let following = session.persist(async |connection| {
        connection.send(&request).await.map_err(Trouble::new)?;
        loop {
            match receive(connection, FOLLOW_SILENCE_MAX).await? {
                FromCoordinator::Progress(progress) => display.show(&progress),
                FromCoordinator::Ended(end) => return Ok(*end),
                other => return Err(ClientError::nonsense(&other).into()),
            }
        }
    });
    following.await
}
