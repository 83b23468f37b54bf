//! Reruns a job from the definition and blobs that the coordinator keeps.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use napreduce_local::coordinator::Accepted;
use napreduce_protocol::requests::RerunJob;
use napreduce_protocol::{Blob, Digest, JobPlan, Submission};

use super::{Client, Parting, Refusal};
use crate::blobs::{BlobStore, PinnedBlob};
use crate::coordinator::requests::{LoopRequest, check_reason};

impl Client {
    /// Reruns a job; the answer is that of a submission.
    pub(super) async fn rerun(&mut self, request: RerunJob) -> Result<(), Parting> {
        check_reason(&request.of.reason)?;
        let job = request.of.job;
        let definition = self
            .question(|reply| LoopRequest::Definition { job, reply })
            .await?;
        let blobs = Arc::clone(&self.desk.blobs);
        let tasks = &self.desk.world.tasks;
        let preparing = tasks.blocking(move || prepare(*definition, &blobs, request));
        let prepared = match preparing.await {
            Ok(prepared) => prepared,
            Err(error) => return Err(Parting::Source(error.to_string())),
        };
        match prepared {
            Ok(prepared) => {
                self.pins = prepared.pins;
                self.submit(Box::new(prepared.submission)).await
            }
            Err(why) => Err(Refusal::wrong(format!("cannot rerun {job}: {why}")).into()),
        }
    }
}

/// A job to be submitted again.
struct Prepared {
    submission: Submission,
    /// The pins of its program and files.
    pins: BTreeMap<Digest, PinnedBlob>,
}

/// Prepares the submission that repeats a job, or returns the reason why it cannot be repeated. Blocking.
fn prepare(
    definition: Accepted,
    blobs: &Arc<BlobStore>,
    request: RerunJob,
) -> Result<Prepared, String> {
    let program = definition.program.ok_or("it has no stored program")?;
    let pinned = pin(blobs, program)?;
    let architecture = pinned.architecture().map_err(|error| error.to_string())?;
    let mut pins = BTreeMap::from([(program.digest, pinned)]);
    for file in &definition.files {
        pins.insert(file.blob.digest, pin(blobs, file.blob)?);
    }
    let plan = rerun_plan(definition.plan, request.output)?;
    let submission = Submission {
        token: request.token,
        plan,
        user: definition.user,
        program,
        architecture: architecture.to_owned(),
        files: definition.files,
        rerun_of: Some(request.of),
    };
    Ok(Prepared { submission, pins })
}

fn pin(blobs: &Arc<BlobStore>, blob: Blob) -> Result<PinnedBlob, String> {
    match blobs.pin(blob.digest) {
        Ok(Some(pinned)) => Ok(pinned),
        Ok(None) => Err(
            "its program or a side file is no longer stored; submit it again with its program"
                .to_owned(),
        ),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the plan of a rerun: that of the job, possibly with another output.
fn rerun_plan(mut plan: JobPlan, output: Option<PathBuf>) -> Result<JobPlan, String> {
    if plan.chain.is_some() {
        return Err("it is one of several jobs of a program; rerun the program".to_owned());
    }
    if let Some(output) = output {
        plan.output = output;
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::CheckpointSupport;

    use super::*;

    #[test]
    fn rerun_to_store_saves_state_like_its_job() {
        let checkpoint = CheckpointSupport {
            map: true,
            reduce: false,
        };
        let plan = JobPlan {
            checkpoint,
            ..JobPlan::new("count", "s3://bucket/out")
        };
        assert_eq!(rerun_plan(plan.clone(), None), Ok(plan.clone()));
        let again = rerun_plan(plan, Some("s3://bucket/again".into())).expect("it can be rerun");
        assert_eq!(
            (again.checkpoint, again.output),
            (checkpoint, "s3://bucket/again".into())
        );
    }
}
