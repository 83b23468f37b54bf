//! The directory for messages between this program and an engine, readable by this user only.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use napreduce_engine::JobId;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{Digest, JobError, JobPlan};
use sha2::{Digest as _, Sha256};

use super::engine::GuestEngineSettings;
use crate::forms::{
    ENGINE_FORMAT, EngineDescription, GuestCheckpoints, GuestPlan, JobRequest, SideFile,
};

/// Length of the quoted end of an engine's output if it exits without an error event.
const QUOTED_BYTES: u64 = 4 << 10;

/// The directory; removed when dropped.
#[derive(Debug)]
pub(super) struct EngineDirectory {
    path: PathBuf,
    /// Link to this program under a name with its digest, once a job has needed it.
    program: Option<PathBuf>,
}

/// A job to submit.
pub(super) struct Submission<'a> {
    pub(super) number: u32,
    pub(super) job: JobId,
    pub(super) plan: &'a JobPlan,
    pub(super) checkpoints: Option<GuestCheckpoints>,
    /// Side files by name.
    pub(super) files: &'a BTreeMap<String, PathBuf>,
    /// The directory for parts.
    pub(super) parts: &'a Path,
}

impl EngineDirectory {
    pub(super) fn make(settings: &GuestEngineSettings) -> Result<EngineDirectory, JobError> {
        let failed = |error| JobError::io("make a directory for the engine", error);
        let random = getrandom::u64().map_err(|error| failed(error.into()))?;
        let path = std::env::temp_dir().join(format!("napreduce-engine-{random:016x}"));
        let path = std::path::absolute(path).map_err(failed)?;
        // Parameters may be confidential.
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(failed)?;
        let directory = EngineDirectory {
            path,
            program: None,
        };
        fs::create_dir(directory.path.join("jobs")).map_err(failed)?;
        let description = EngineDescription {
            format: ENGINE_FORMAT.to_owned(),
            submitter: std::process::id(),
            name: settings.name.clone(),
            settings: settings.settings.clone(),
        };
        directory.write("engine.json", &json(&description)?)?;
        Ok(directory)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn log(&self) -> Result<File, JobError> {
        let path = self.path.join("log");
        File::options()
            .append(true)
            .create(true)
            .open(&path)
            .map_err(|error| JobError::io(format!("write {}", path.display()), error))
    }

    /// Returns the last lines of the engine's output.
    pub(super) fn last_output(&self) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(self.path.join("log"))?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(QUOTED_BYTES)))?;
            let mut bytes = Vec::new();
            file.take(QUOTED_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let text = read().map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
        text.ok()
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| "no output".to_owned())
    }

    /// Writes the request of a job.
    pub(super) fn request(&mut self, submission: Submission<'_>) -> Result<(), JobError> {
        let Submission {
            number,
            job,
            plan,
            checkpoints,
            files,
            parts,
        } = submission;
        let guest_plan = GuestPlan::of(job, plan).map_err(JobError::Plan)?;
        let guest_plan = match checkpoints {
            Some(checkpoints) => guest_plan.saving(checkpoints),
            None => guest_plan,
        };
        let text = guest_plan.to_json();
        let text =
            text.map_err(|error| JobError::Plan(format!("cannot encode the plan: {error}")))?;
        let plan_name = format!("napreduce-plan-{number}.json");
        self.write(&plan_name, &text)?;
        let unlinked = |error| JobError::io("hand a file to the engine", error);
        let mut side_files = Vec::new();
        for ((name, path), index) in files.iter().zip(0..) {
            let link = self.path.join(format!("napreduce-file-{number}-{index}"));
            symlink(path, &link).map_err(unlinked)?;
            side_files.push(SideFile {
                name: name.clone(),
                path: link,
            });
        }
        if parts.to_str().is_none() {
            let what = format!(
                "the path {} is not UTF-8; engines need UTF-8 paths",
                parts.display()
            );
            return Err(JobError::Plan(what));
        }
        let request = JobRequest {
            format: ENGINE_FORMAT.to_owned(),
            number,
            job: job.to_string(),
            name: plan.name.clone(),
            program: self.program()?,
            plan: self.path.join(plan_name),
            files: side_files,
            inputs: plan
                .splits
                .iter()
                .map(|split| one_file(&split.parts))
                .collect(),
            reduces: plan.reduces,
            attempts_max: plan.attempts_max,
            parts: parts.to_owned(),
        };
        let text = json(&request)?;
        self.write(&format!("jobs/{number}.unfinished"), &text)?;
        let from = self.path.join(format!("jobs/{number}.unfinished"));
        let to = self.path.join(format!("jobs/{number}.json"));
        fs::rename(from, to).map_err(|error| JobError::io("hand the job to the engine", error))
    }

    /// Returns this program, linked under a name with its digest.
    fn program(&mut self) -> Result<PathBuf, JobError> {
        if let Some(program) = &self.program {
            return Ok(program.clone());
        }
        let unreadable = |error| JobError::io("read this program", error);
        let own = std::env::current_exe().map_err(unreadable)?;
        let mut hasher = Sha256::new();
        let mut file = File::open(&own).map_err(unreadable)?;
        io::copy(&mut file, &mut hasher).map_err(unreadable)?;
        let digest = Digest(hasher.finalize().into());
        let link = self.path.join(format!("napreduce-program-{digest}"));
        symlink(&own, &link).map_err(unreadable)?;
        Ok(self.program.insert(link).clone())
    }

    pub(super) fn cancel(&self, number: u32) -> Result<(), JobError> {
        self.write(&format!("jobs/{number}.cancel"), b"")
    }

    pub(super) fn end(&self) -> Result<(), JobError> {
        self.write("end", b"")
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), JobError> {
        let path = self.path.join(name);
        fs::write(&path, bytes)
            .map_err(|error| JobError::io(format!("write {}", path.display()), error))
    }
}

impl Drop for EngineDirectory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            print_error(format_args!(
                "cannot remove {}: {error}",
                self.path.display()
            ));
        }
    }
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, JobError> {
    serde_json::to_vec_pretty(value).map_err(|error| {
        JobError::Internal(format!("cannot encode the job for the engine: {error}"))
    })
}

/// Returns the file of a split; `None` if there are several.
fn one_file(parts: &[napreduce_protocol::Split]) -> Option<String> {
    match parts {
        [part] => part.path.to_str().map(str::to_owned),
        _ => None,
    }
}
