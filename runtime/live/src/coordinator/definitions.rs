//! What was submitted of jobs that have ended, so that they can be run again.
//!
//! Owns the files, `definitions/job_0007.json`, and how many there are. Does not own the programs, which may
//! have been dropped (`blobs`). A file that is lost costs nothing but that its job cannot be run again, so
//! that none is synced.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use napreduce_core::{JobChange, JobId};

use super::answers::{send, unknown_job};
use super::daemon::Coordinator;
use super::entry::Accepted;
use super::requests::{Refusal, Reply};

/// Definitions that are kept, and the bytes of them; the oldest go first.
const KEPT_MAX: usize = 1_000;
const BYTES_MAX: u64 = 256 << 20;

impl Coordinator {
    /// Answers with what was submitted of a job, which may have ended.
    pub(super) fn definition(&self, job: JobId, reply: Reply<Box<Accepted>>) {
        if let Some(known) = self.state.jobs.get(&job) {
            return send(reply, Ok(Box::new(known.definition())));
        }
        let Some(lasting) = &self.lasting else { return send(reply, Err(unknown_job(job))) };
        let (directory, is_known) =
            (folder(lasting.configuration.directory.path()), lasting.history.has(job));
        tokio::task::spawn_blocking(move || {
            send(
                reply,
                read(&directory, job).map_err(|refusal| if is_known { refusal } else { unknown_job(job) }),
            );
        });
    }
}

/// Where definitions are in a cluster directory.
pub(super) fn folder(cluster: &Path) -> PathBuf {
    cluster.join("coordinator/definitions")
}

/// Keeps what was submitted, with what was changed since, and removes what is too much. Blocking.
pub(super) fn keep(folder: &Path, accepted: &Arc<Accepted>, change: &JobChange) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let path = file(folder, accepted.job);
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, serde_json::to_vec(&accepted.with(change))?)?;
    fs::rename(&unfinished, &path)?;
    let mut kept = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let job = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse::<JobId>().ok());
        if let Some(job) = job {
            kept.push((job, entry.metadata()?.len()));
        }
    }
    kept.sort_unstable_by(|one, other| other.cmp(one));
    let mut bytes = 0_u64;
    for (number, (job, length)) in kept.into_iter().enumerate() {
        bytes = bytes.saturating_add(length);
        if number > 0 && (number >= KEPT_MAX || bytes > BYTES_MAX) {
            fs::remove_file(file(folder, job))?;
        }
    }
    Ok(())
}

fn read(folder: &Path, job: JobId) -> Result<Box<Accepted>, Refusal> {
    let path = file(folder, job);
    let text = fs::read(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Refusal::wrong(format!(
            "what was submitted as {job} is not kept any more; that of the last {KEPT_MAX} ended jobs is. Submit it again with its program"
        )),
        _ => Refusal { status: 1, reason: format!("cannot read {}: {error}", path.display()) },
    })?;
    serde_json::from_slice(&text).map_err(|error| Refusal {
        status: 1,
        reason: format!("{} cannot be read: {error}; submit the job again with its program", path.display()),
    })
}

fn file(folder: &Path, job: JobId) -> PathBuf {
    folder.join(format!("{job}.json"))
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::JobPlan;

    use super::*;
    use crate::output::ClaimMark;

    fn accepted(job: u32) -> Arc<Accepted> {
        Arc::new(Accepted {
            job: JobId(job),
            token: 7,
            plan: JobPlan::new("count", "/out"),
            user: "ada".to_owned(),
            program: None,
            files: Vec::new(),
            claim: ClaimMark::default(),
            rerun_of: None,
        })
    }

    #[test]
    fn a_definition_is_read_as_it_was_kept_and_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let change = JobChange { priority: Some(5), queue: Some("nightly".to_owned()) };
        keep(folder.path(), &accepted(7), &change).expect("kept");
        let read = read(folder.path(), JobId(7)).expect("it is there");
        assert_eq!((read.plan.priority, read.plan.queue.as_str(), read.user.as_str()), (5, "nightly", "ada"));
        let refused = super::read(folder.path(), JobId(8)).expect_err("it is not");
        assert!(
            refused.reason.starts_with("what was submitted as job_0008 is not kept any more"),
            "{}",
            refused.reason
        );
        fs::write(file(folder.path(), JobId(9)), "{").expect("written");
        let refused = super::read(folder.path(), JobId(9)).expect_err("it is damaged");
        assert!(
            refused.status == 1 && refused.reason.contains("job_0009.json cannot be read"),
            "{}",
            refused.reason
        );
    }

    #[test]
    fn the_oldest_definitions_go_first() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 1..=KEPT_MAX as u32 {
            fs::write(file(folder.path(), JobId(number)), "{}").expect("written");
        }
        keep(folder.path(), &accepted(KEPT_MAX as u32 + 1), &JobChange::default()).expect("kept");
        assert!(!file(folder.path(), JobId(1)).exists(), "the first is gone");
        assert!(
            file(folder.path(), JobId(2)).exists()
                && file(folder.path(), JobId(KEPT_MAX as u32 + 1)).exists()
        );
    }
}
