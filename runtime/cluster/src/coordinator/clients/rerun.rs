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
    pub(super) async fn rerun(&mut self, asked: RerunJob) -> Result<(), Parting> {
        check_reason(&asked.of.reason)?;
        let job = asked.of.job;
        let definition = self
            .question(|reply| LoopRequest::Definition { job, reply })
            .await?;
        let blobs = Arc::clone(&self.desk.blobs);
        let tasks = &self.desk.world.tasks;
        let prepared = tasks.blocking(move || prepare(*definition, &blobs, asked));
        let prepared = prepared
            .await
            .map_err(|error| Parting::Source(error.to_string()))?;
        let (submission, pins) =
            prepared.map_err(|why| Refusal::wrong(format!("cannot rerun {job}: {why}")))?;
        self.pins = pins;
        self.submit(Box::new(submission)).await
    }
}

/// Returns the submission that repeats a job, and the pins of its program and files. Blocking.
fn prepare(
    definition: Accepted,
    blobs: &Arc<BlobStore>,
    asked: RerunJob,
) -> Result<(Submission, BTreeMap<Digest, PinnedBlob>), String> {
    let RerunJob { token, of, output } = asked;
    let program = definition.program.ok_or("it has no stored program")?;
    let pinned = pin(blobs, program)?;
    let architecture = pinned.architecture().map_err(|error| error.to_string())?;
    let mut pins = BTreeMap::from([(program.digest, pinned)]);
    for file in &definition.files {
        pins.insert(file.blob.digest, pin(blobs, file.blob)?);
    }
    let plan = plan_again(definition.plan, output)?;
    let submission = Submission {
        token,
        plan,
        user: definition.user,
        program,
        architecture: architecture.to_owned(),
        files: definition.files,
        rerun_of: Some(of),
    };
    Ok((submission, pins))
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
fn plan_again(mut plan: JobPlan, output: Option<PathBuf>) -> Result<JobPlan, String> {
    if plan.chain.is_some() {
        return Err("it is one of several jobs of a program; rerun the program".to_owned());
    }
    plan.output = output.unwrap_or(plan.output);
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
        assert_eq!(plan_again(plan.clone(), None), Ok(plan.clone()));
        let again = plan_again(plan, Some("s3://bucket/again".into())).expect("it can be rerun");
        assert_eq!(
            (again.checkpoint, again.output),
            (checkpoint, "s3://bucket/again".into())
        );
    }
}
