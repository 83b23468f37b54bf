//! Submits a job. A repeated submission does not create a second job.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use napreduce_engine::JobId;
use napreduce_local::world::World;
use napreduce_local::{SIDE_FILE_BYTES_MAX, SideFileSource, current_user};
use napreduce_protocol::{JobPlan, SideFile, Submission};

use super::ClientError;
use super::sending::{ProgramFile, Reading, SourceFile, UploadProgress, offer};
use super::session::{ANSWER_DEADLINE, Session, exchange_within};

/// Options of a submission besides the plan. The default is this program, without side files, for the current
/// user.
#[derive(Debug, Clone)]
pub struct SubmitOptions {
    /// The submitting user.
    pub user: String,
    /// Side files.
    pub files: Vec<SideFileSource>,
    /// The size limit of each side file, in bytes.
    pub file_bytes_max: u64,
    /// The program that tasks run; `None` for this process's program.
    pub program: Option<PathBuf>,
}

impl Default for SubmitOptions {
    fn default() -> SubmitOptions {
        SubmitOptions {
            user: current_user(),
            files: Vec::new(),
            file_bytes_max: SIDE_FILE_BYTES_MAX,
            program: None,
        }
    }
}

/// A job with its program and files.
pub(super) struct Parcel {
    submission: Submission,
    sources: Vec<SourceFile>,
}

impl Parcel {
    /// Reads every file once for its digest, unless cancelled.
    pub(super) fn pack(
        plan: JobPlan,
        options: &SubmitOptions,
        token: u128,
        cancelled: &AtomicBool,
    ) -> Result<Parcel, ClientError> {
        plan.check().map_err(ClientError::Usage)?;
        let program = match &options.program {
            Some(path) => ProgramFile::read(path, cancelled)?,
            None => ProgramFile::own(cancelled)?,
        };
        let reading = Reading {
            bytes_max: options.file_bytes_max,
            cancelled,
        };
        let mut sources = vec![program.file.clone()];
        let mut files = Vec::new();
        for SideFileSource { path, name } in &options.files {
            let source = SourceFile::read(path, &reading)?;
            files.push(SideFile {
                name: name.clone(),
                blob: source.blob,
            });
            sources.push(source);
        }
        let submission = Submission {
            token,
            plan,
            user: options.user.clone(),
            program: program.file.blob,
            architecture: program.architecture,
            files,
            rerun_of: None,
        };
        Ok(Parcel {
            submission,
            sources,
        })
    }

    /// Uploads missing blobs, then submits the job; restarts if the connection breaks. No job exists until
    /// `handed_in` is set.
    pub(super) async fn send(
        self,
        session: &mut Session,
        handed_in: &Cell<bool>,
    ) -> Result<JobId, ClientError> {
        let Parcel {
            submission,
            sources,
        } = self;
        let message = submission.into();
        let tasks = session.world().tasks;
        let progress = UploadProgress::new(session.tells(), session.advanced());
        let submitting = session.retry(async |connection| {
            for source in &sources {
                offer(&tasks, connection, source, &progress).await?;
            }
            handed_in.set(true);
            exchange_within::<Submission>(connection, &message, ANSWER_DEADLINE).await
        });
        submitting.await
    }
}

pub(super) fn random_token(world: &World) -> Result<u128, ClientError> {
    world.random.token().map_err(|source| ClientError::Io {
        doing: "draw a random number",
        source,
    })
}
