//! Reruns a job from the definition and blobs that the coordinator keeps.

use std::sync::Arc;

use napreduce_local::coordinator::Accepted;
use napreduce_protocol::requests::RerunJob;
use napreduce_protocol::{Blob, Submission};

use super::{Client, Parting, Refusal};
use crate::blobs::{PinnedBlob, program_architecture};
use crate::coordinator::requests::Request;

const NO_PROGRAM: &str = "it has no stored program";

impl Client {
    /// Reruns a job; the answer is that of a submission.
    pub(super) async fn rerun(&mut self, asked: RerunJob) -> Result<(), Parting> {
        let job = asked.of.job;
        let definition = self.question(|reply| Request::Definition { job, reply }).await?;
        let blobs = Arc::clone(&self.desk.blobs);
        let prepared = tokio::task::spawn_blocking(move || {
            let wanted = definition.program.into_iter().chain(definition.files.iter().map(|file| file.blob));
            let pins = wanted.map(|blob| pin(&blobs, blob)).collect::<Result<Vec<_>, _>>();
            pins.and_then(|pins| Ok((prepare(*definition, architecture_of(&pins)?, asked)?, pins)))
        });
        let prepared = prepared.await.map_err(|error| Parting::Source(error.to_string()))?;
        let (submission, pins) =
            prepared.map_err(|why| Refusal::wrong(format!("cannot rerun {job}: {why}")))?;
        self.pins = pins.into_iter().map(|(blob, pinned)| (blob.digest, pinned)).collect();
        self.submit(Box::new(submission)).await
    }
}

fn pin(blobs: &Arc<crate::blobs::BlobStore>, blob: Blob) -> Result<(Blob, PinnedBlob), String> {
    let pinned = blobs.pin(blob.digest).map_err(|error| error.to_string())?;
    let pinned =
        pinned.ok_or("its program or a side file is no longer stored; submit it again with its program")?;
    Ok((blob, pinned))
}

/// Returns the architecture of the program, which is pinned first.
fn architecture_of(pins: &[(Blob, PinnedBlob)]) -> Result<String, String> {
    let (_, program) = pins.first().ok_or(NO_PROGRAM)?;
    Ok(program_architecture(&program.path()).map_err(|error| error.to_string())?.to_owned())
}

fn prepare(definition: Accepted, architecture: String, asked: RerunJob) -> Result<Submission, String> {
    let RerunJob { token, of, output } = asked;
    let Accepted { mut plan, user, program, files, .. } = definition;
    if plan.chain.is_some() {
        return Err("it is one of several jobs of a program; rerun the program".to_owned());
    }
    let program = program.ok_or(NO_PROGRAM)?;
    plan.output = output.unwrap_or(plan.output);
    Ok(Submission { token, plan, user, program, architecture, files, rerun_of: Some(of) })
}

#[cfg(test)]
mod tests {
    use napreduce_engine::JobId;
    use napreduce_local::output::ClaimMark;
    use napreduce_protocol::{CheckpointSupport, Digest, JobPlan, RerunOf};

    use super::*;

    #[test]
    fn rerun_to_store_saves_state_like_its_job() {
        let checkpoint = CheckpointSupport { map: true, reduce: false };
        let definition = Accepted {
            job: JobId(1),
            token: 1,
            plan: JobPlan { checkpoint, ..JobPlan::new("count", "s3://bucket/out") },
            user: "ada".to_owned(),
            program: Some(Blob { digest: Digest([7; 32]), bytes: 1 }),
            files: Vec::new(),
            claim: ClaimMark::default(),
            rerun_of: None,
        };
        for output in [None, Some("s3://bucket/again".into()), Some("/again".into())] {
            let of = RerunOf { job: JobId(1), reason: "a test".to_owned() };
            let asked = RerunJob { token: 2, of, output: output.clone() };
            let again = prepare(definition.clone(), "x86_64".to_owned(), asked).expect("it can be rerun");
            assert_eq!(again.plan.checkpoint, checkpoint);
            assert_eq!(again.plan.output, output.unwrap_or_else(|| "s3://bucket/out".into()));
        }
    }
}
