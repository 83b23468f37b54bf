//! Reruns a job from the definition and blobs that the coordinator keeps.

use std::path::PathBuf;
use std::sync::Arc;

use napreduce_local::coordinator::Accepted;
use napreduce_protocol::requests::RerunJob;
use napreduce_protocol::{Blob, JobPlan, Submission};

use super::{Client, Parting, Refusal};
use crate::blobs::{PinnedBlob, program_architecture};
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
        let prepared = tokio::task::spawn_blocking(move || {
            let wanted = definition
                .program
                .into_iter()
                .chain(definition.files.iter().map(|file| file.blob));
            let pins = wanted
                .map(|blob| pin(&blobs, blob))
                .collect::<Result<Vec<_>, _>>();
            pins.and_then(|pins| Ok((prepare(*definition, &pins, asked)?, pins)))
        });
        let prepared = prepared
            .await
            .map_err(|error| Parting::Source(error.to_string()))?;
        let (submission, pins) =
            prepared.map_err(|why| Refusal::wrong(format!("cannot rerun {job}: {why}")))?;
        self.pins = pins
            .into_iter()
            .map(|(blob, pinned)| (blob.digest, pinned))
            .collect();
        self.submit(Box::new(submission)).await
    }
}

fn pin(blobs: &Arc<crate::blobs::BlobStore>, blob: Blob) -> Result<(Blob, PinnedBlob), String> {
    let pinned = blobs.pin(blob.digest).map_err(|error| error.to_string())?;
    let pinned = pinned.ok_or(
        "its program or a side file is no longer stored; submit it again with its program",
    )?;
    Ok((blob, pinned))
}

fn prepare(
    definition: Accepted,
    pins: &[(Blob, PinnedBlob)],
    asked: RerunJob,
) -> Result<Submission, String> {
    let RerunJob { token, of, output } = asked;
    let Accepted {
        plan,
        user,
        program,
        files,
        ..
    } = definition;
    let plan = plan_again(plan, output)?;
    let program = program.ok_or("it has no stored program")?;
    let (_, pinned) = pins.first().ok_or("it has no stored program")?;
    let architecture = program_architecture(&pinned.path())
        .map_err(|error| error.to_string())?
        .to_owned();
    Ok(Submission {
        token,
        plan,
        user,
        program,
        architecture,
        files,
        rerun_of: Some(of),
    })
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
