//! Definitions of ended jobs, `definitions/job_0007.json`, so that they can be run again. Programs are kept
//! separately and may have been dropped. A lost file only prevents rerunning its job, so none is synced.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use napreduce_engine::{JobChange, JobId};
use napreduce_local::coordinator::Accepted;
use napreduce_local::world::disk::{Disk, Links, Opening};
use napreduce_protocol::IoResult;

use super::ClusterCoordinator;
use super::refusal::Refusal;
use super::requests::Reply;
use crate::cluster_directory::ClusterDirectory;

/// Limits on the number and bytes of definitions; the oldest are removed first.
const KEPT_MAX: usize = 1_000;
const BYTES_MAX: u64 = 256 << 20;
/// The permissions of definitions and of their directory, before the process's mask.
const MODE: u32 = 0o666;
const DIRECTORY_MODE: u32 = 0o777;

impl ClusterCoordinator {
    /// Answers with a job's definition, even if the job has ended.
    pub(super) fn read_definition(&self, job: JobId, reply: Reply<Box<Accepted>>) {
        if let Some(known) = self.local.state().jobs().get(&job) {
            return reply.send(Ok(Box::new(known.definition())));
        }
        let definitions = Arc::clone(&self.definitions);
        let is_known = self.history.has(job);
        let tasks = &self.configuration.world.tasks;
        tasks.blocking(move || {
            reply.send(match definitions.read(job) {
                Err(_) if !is_known => Err(Refusal::NoSuchJob(job)),
                read => read,
            });
        });
    }
}

/// The definitions of a cluster directory.
#[derive(Debug)]
pub(super) struct Definitions {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// Listed on first use: listing a thousand files takes longer than everything else at a job's end.
    kept: Mutex<Option<StoredDefinitions>>,
}

/// The jobs with definitions, the bytes of each, and the total.
#[derive(Debug, Default)]
struct StoredDefinitions {
    lengths: BTreeMap<JobId, u64>,
    bytes: u64,
}

impl Definitions {
    pub(super) fn new(cluster: &ClusterDirectory) -> Definitions {
        Definitions {
            disk: Arc::clone(cluster.disk()),
            folder: cluster.coordinator_directory().join("definitions"),
            kept: Mutex::default(),
        }
    }

    /// Stores a job's definition with later changes, and removes old definitions beyond the limits. Blocking.
    pub(super) fn keep(&self, accepted: &Accepted, change: &JobChange) -> io::Result<()> {
        let definition = serde_json::to_vec(&accepted.with_change(change))?;
        // After a panic the directory is listed again.
        let mut kept = self.kept.lock().unwrap_or_else(|poisoned| {
            let mut kept = poisoned.into_inner();
            *kept = None;
            kept
        });
        if kept.is_none() {
            let made = self.disk.make_directory(&self.folder, DIRECTORY_MODE);
            made.unless_there()?;
            *kept = Some(StoredDefinitions::list(&*self.disk, &self.folder)?);
        }
        let path = file(&self.folder, accepted.job);
        let unfinished = path.with_extension("unfinished");
        let opening = Opening::CreateOrEmpty { mode: MODE };
        self.disk
            .open(&unfinished, opening)?
            .write_all(&definition)?;
        self.disk.rename(&unfinished, &path)?;
        let Some(kept) = kept.as_mut() else {
            return Ok(());
        };
        kept.add(accepted.job, definition.len() as u64);
        while let Some(oldest) = kept.too_much() {
            self.disk
                .remove_file(&file(&self.folder, oldest))
                .if_there()?;
            kept.forget(oldest);
        }
        Ok(())
    }

    fn read(&self, job: JobId) -> Result<Box<Accepted>, Refusal> {
        let path = file(&self.folder, job);
        let text = self.disk.read(&path, BYTES_MAX);
        let text = text.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Refusal::wrong(format!(
                "the submission of {job} is no longer stored (limit {KEPT_MAX} ended jobs); submit the job \
                 again with its program"
            )),
            _ => Refusal::failed(format_args!("cannot read {}: {error}", path.display())),
        })?;
        serde_json::from_slice(&text).map_err(|error| {
            let remedy = "submit the job again with its program";
            Refusal::failed(format_args!(
                "cannot parse {}: {error}; {remedy}",
                path.display()
            ))
        })
    }
}

impl StoredDefinitions {
    fn list(disk: &dyn Disk, folder: &Path) -> io::Result<StoredDefinitions> {
        let mut kept = StoredDefinitions::default();
        for name in disk.list(folder)? {
            let job = name
                .to_str()
                .and_then(|name| name.strip_suffix(".json")?.parse::<JobId>().ok());
            if let Some(job) = job {
                let stat = disk.stat(&folder.join(&name), Links::NotFollowed)?;
                kept.add(job, stat.bytes);
            }
        }
        Ok(kept)
    }

    fn add(&mut self, job: JobId, length: u64) {
        let before = self.lengths.insert(job, length).unwrap_or(0);
        self.bytes = self.bytes.saturating_sub(before).saturating_add(length);
    }

    fn forget(&mut self, job: JobId) {
        self.bytes = self
            .bytes
            .saturating_sub(self.lengths.remove(&job).unwrap_or(0));
    }

    /// Returns the oldest job if a limit is exceeded; the last one stays regardless of its size.
    fn too_much(&self) -> Option<JobId> {
        let count = self.lengths.len();
        let oldest = self.lengths.keys().next().copied();
        oldest.filter(|_| count > 1 && (count > KEPT_MAX || self.bytes > BYTES_MAX))
    }
}

fn file(folder: &Path, job: JobId) -> PathBuf {
    folder.join(format!("{job}.json"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use napreduce_protocol::JobPlan;

    use super::*;
    use napreduce_local::output::ClaimMark;

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

    /// Creates a cluster directory and its definitions.
    fn begin() -> (tempfile::TempDir, Definitions) {
        let cluster = tempfile::tempdir().expect("a folder");
        let directory =
            ClusterDirectory::resolve(Some(cluster.path().to_owned())).expect("a place");
        let definitions = Definitions::new(&directory);
        fs::create_dir_all(&definitions.folder).expect("made");
        (cluster, definitions)
    }

    fn numbers(definitions: &Definitions) -> Vec<u32> {
        let mut kept: Vec<u32> = StoredDefinitions::list(&*definitions.disk, &definitions.folder)
            .expect("listed")
            .lengths
            .keys()
            .map(|job| job.0)
            .collect();
        kept.sort_unstable();
        kept
    }

    #[test]
    fn definition_is_read_as_stored_and_changed() {
        let (_cluster, definitions) = begin();
        let change = JobChange {
            priority: Some(5),
            queue: Some("nightly".to_owned()),
        };
        definitions.keep(&accepted(7), &change).expect("kept");
        let folder = &definitions.folder;
        let read = definitions.read(JobId(7)).expect("it is there");
        assert_eq!(
            (
                read.plan.priority,
                read.plan.queue.as_str(),
                read.user.as_str()
            ),
            (5, "nightly", "ada")
        );
        let refused = definitions.read(JobId(8)).expect_err("it is not");
        let message = refused.to_string();
        assert!(
            message.starts_with("the submission of job_0008 is no longer stored"),
            "{message}"
        );
        fs::write(file(folder, JobId(9)), "{").expect("written");
        let refused = definitions.read(JobId(9)).expect_err("it is damaged");
        let message = refused.to_string();
        assert!(
            refused.status() == 1
                && message.contains("cannot parse ")
                && message.contains("job_0009.json: "),
            "{message}"
        );
    }

    #[test]
    fn oldest_definitions_are_removed_first() {
        let (_cluster, definitions) = begin();
        let most = KEPT_MAX as u32;
        for number in 1..=most {
            fs::write(file(&definitions.folder, JobId(number)), "{}").expect("written");
        }
        for number in most + 1..=most + 2 {
            definitions
                .keep(&accepted(number), &JobChange::default())
                .expect("kept");
        }
        assert_eq!(numbers(&definitions), (3..=most + 2).collect::<Vec<u32>>());
    }

    #[test]
    fn byte_limit_keeps_last_definition() {
        let (_cluster, definitions) = begin();
        let large = fs::File::create(file(&definitions.folder, JobId(1))).expect("made");
        large.set_len(BYTES_MAX).expect("a hole");
        definitions
            .keep(&accepted(2), &JobChange::default())
            .expect("kept");
        assert_eq!(numbers(&definitions), [2]);
        definitions
            .keep(&accepted(2), &JobChange::default())
            .expect("kept again");
        assert_eq!(numbers(&definitions), [2], "once");
    }

    #[test]
    fn removed_definition_is_no_error() {
        let (_cluster, definitions) = begin();
        definitions
            .keep(&accepted(1), &JobChange::default())
            .expect("kept");
        definitions
            .kept
            .lock()
            .expect("no panic")
            .as_mut()
            .expect("listed")
            .bytes = BYTES_MAX;
        fs::remove_file(file(&definitions.folder, JobId(1))).expect("removed");
        definitions
            .keep(&accepted(2), &JobChange::default())
            .expect("kept");
        assert_eq!(numbers(&definitions), [2]);
    }
}
