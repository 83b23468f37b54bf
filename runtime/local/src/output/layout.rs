//! The names of all files of a job inside its output directory.
//!
//! ```text
//! OUT/_temporary/claim.json              owner of the directory and progress of the commit
//! OUT/_temporary.<submission>            `_temporary` until its claim is complete
//! OUT/_temporary.<submission>.old        being removed: of an earlier run, or of this one at its end
//! OUT/_temporary/<job>-<token>/          everything of one claim, below called `WORK/`
//! WORK/<attempt>/                        scratch of an attempt, and its part file until it may commit
//! WORK/shuffle/<attempt>.segment         sealed map output: all output of an embedded job; on a cluster, output that
//!                                        outlived its worker
//! WORK/guests/<any name>                 parts written by guests of another engine, until the job commits
//! WORK/checkpoints/<attempt>/            checkpoint of an attempt; kept until the job ends, because later
//!                                        checkpoints refer to files of earlier ones
//! WORK/committed/part-r-00000.1          parts of committed attempts, by attempt number: a late commit whose report
//!                                        is lost does no harm
//! WORK/committed/part-r-00000.1.errors   named output `errors` of such an attempt
//! WORK/intent.json, WORK/_SUCCESS        files that the commit moves into place
//! OUT/part-r-00000, OUT/errors-r-00000, OUT/_SUCCESS
//!                                        after the commit
//! ```
//!
//! If OUT is in a store, everything below `WORK` is below `TMPDIR/napreduce-<job>-<token>/` (in a cluster, in
//! the directories of the workers). There is no `committed`: attempts upload the parts themselves (`bucket`).
//! Checkpoints of a cluster's attempts are also in objects `OUT/_temporary/checkpoint-<token>-<attempt>...`.
//!
//! The paths contain the token, so a late step of a job whose claim was taken by another run finds no files
//! to move.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
use napreduce_protocol::{ClaimToken, NamedPart, StorageScheme};

use super::manifest::CommittedPart;

/// Work in progress; without a running job it shows that a run was killed.
pub(crate) const TEMPORARY: &str = "_temporary";
/// Name prefix of the objects that contain checkpoints.
pub(super) const STORED_CHECKPOINT: &str = "_temporary/checkpoint-";
/// Written last, when everything else is in place.
pub(crate) const SUCCESS: &str = "_SUCCESS";
/// The name of an incomplete `_SUCCESS` in earlier versions; removed when an output is replaced.
const SUCCESS_UNFINISHED: &str = "_SUCCESS.unfinished";
/// Name prefix of part files.
const PART: &str = "part";
/// Minimum digits of a part number.
const PART_DIGITS: usize = 5;

/// The paths of one job: absolute for tasks, or relative to the output directory for claim and commit.
#[derive(Debug, Clone)]
pub(crate) struct JobPaths {
    output: PathBuf,
    /// The parent of `work`.
    root: PathBuf,
    work: PathBuf,
    token: ClaimToken,
    extension: String,
}

impl JobPaths {
    /// Creates the paths of `job` inside `output`; part files get `extension` unless it is empty.
    pub(crate) fn new(output: &Path, job: JobId, token: ClaimToken, extension: &str) -> JobPaths {
        let (root, work) = match StorageScheme::from_path(output) {
            None => (
                output.to_owned(),
                Path::new(TEMPORARY).join(format!("{job}-{token}")),
            ),
            Some(_) => (
                std::env::temp_dir(),
                PathBuf::from(format!("napreduce-{job}-{token}")),
            ),
        };
        JobPaths {
            output: output.to_owned(),
            root,
            work,
            token,
            extension: extension.to_owned(),
        }
    }

    /// Returns whether the output is in a store.
    pub(crate) fn are_in_store(&self) -> bool {
        StorageScheme::from_path(&self.output).is_some()
    }

    /// Returns the local directory of an embedded job whose output is in a store.
    pub(super) fn local_work(&self) -> PathBuf {
        self.root.join(&self.work)
    }

    /// The directory of the claim, relative to the output directory.
    pub(super) fn work(&self) -> &Path {
        &self.work
    }

    /// Returns the directories that a claim creates in `temporary` before it is renamed into place.
    pub(super) fn folders(&self, temporary: &Path) -> [PathBuf; 3] {
        let work = temporary.join(self.work.file_name().unwrap_or_default());
        let shuffle = work.join("shuffle");
        let committed = work.join("committed");
        [work, shuffle, committed]
    }

    pub(super) fn shuffle(&self) -> PathBuf {
        self.work.join("shuffle")
    }

    /// The directory for parts of guests, relative to the output directory.
    pub(super) fn guests(&self) -> PathBuf {
        self.work.join("guests")
    }

    /// The directory for parts of committed attempts, relative to the output directory.
    pub(super) fn committed(&self) -> PathBuf {
        self.work.join("committed")
    }

    /// The file that lists the renames of the commit, relative to the output directory.
    pub(super) fn intent(&self) -> PathBuf {
        self.work.join("intent.json")
    }

    /// The location of `_SUCCESS` until everything else is in place.
    pub(super) fn staged_success(&self) -> PathBuf {
        self.work.join(SUCCESS)
    }

    /// The sealed output of a map attempt.
    pub(crate) fn segment(&self, attempt: AttemptId) -> PathBuf {
        self.root
            .join(self.shuffle())
            .join(format!("{attempt}.segment"))
    }

    /// The scratch directory of an attempt.
    pub(crate) fn attempt(&self, attempt: AttemptId) -> PathBuf {
        self.root.join(&self.work).join(attempt.to_string())
    }

    /// The checkpoint directory of an attempt.
    pub(crate) fn checkpoint(&self, attempt: AttemptId) -> PathBuf {
        self.root
            .join(&self.work)
            .join("checkpoints")
            .join(attempt.to_string())
    }

    /// Name prefix of the objects with checkpoints if the output is in a store.
    pub(crate) fn stored_checkpoints(&self) -> Option<PathBuf> {
        self.are_in_store().then(|| {
            self.output
                .join(format!("{STORED_CHECKPOINT}{}", self.token))
        })
    }

    /// The part of a committed attempt; in a store, the part of its task.
    pub(crate) fn promoted(&self, attempt: AttemptId) -> PathBuf {
        if self.are_in_store() {
            return self.output.join(self.part_name(attempt.task));
        }
        self.output
            .join(self.committed())
            .join(self.promoted_name(attempt))
    }

    /// The file name of a committed attempt's part.
    pub(super) fn promoted_name(&self, attempt: AttemptId) -> String {
        format!("{}.{}", self.part_name(attempt.task), attempt.number)
    }

    /// The file name, in `committed`, of a part to be committed.
    pub(super) fn waiting_name(&self, part: &CommittedPart) -> String {
        let name = self.promoted_name(part.attempt);
        match &part.output {
            None => name,
            Some(output) => NamedPart::path_next_to(Path::new(&name), output)
                .to_string_lossy()
                .into_owned(),
        }
    }

    /// The name of the part file that a task writes.
    pub(crate) fn part_name(&self, task: TaskId) -> String {
        self.named_part(PART, task)
    }

    /// The file name of a task's part of a named output.
    pub(crate) fn named_part(&self, output: &str, task: TaskId) -> String {
        let letter = match task.kind {
            TaskKind::Map => 'm',
            TaskKind::Reduce => 'r',
        };
        let dot = if self.extension.is_empty() { "" } else { "." };
        format!(
            "{output}-{letter}-{:0PART_DIGITS$}{dot}{}",
            task.index, self.extension
        )
    }
}

/// The file with the claim.
pub(super) fn claim_in(temporary: &Path) -> PathBuf {
    temporary.join("claim.json")
}

/// The name of `_temporary` until its claim is complete.
pub(super) fn staged(submission: u128) -> PathBuf {
    PathBuf::from(format!("{TEMPORARY}.{submission:032x}"))
}

/// The name of a `_temporary` that is being removed.
pub(super) fn retired(submission: u128) -> PathBuf {
    PathBuf::from(format!("{TEMPORARY}.{submission:032x}.old"))
}

/// Returns whether an entry of an output directory is a claim's file other than `_temporary` itself.
pub(super) fn is_remains(name: &OsStr) -> bool {
    let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY)) else {
        return false;
    };
    let submission = rest.strip_suffix(".old").unwrap_or(rest).strip_prefix('.');
    submission
        .is_some_and(|text| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns whether a job may have written a file of that name without listing it in a manifest:
/// `part-r-00000` with any extension.
pub(super) fn is_part(name: &OsStr) -> bool {
    let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PART)) else {
        return false;
    };
    let Some(number) = rest
        .strip_prefix("-m-")
        .or_else(|| rest.strip_prefix("-r-"))
    else {
        return false;
    };
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    digits >= PART_DIGITS && (digits == number.len() || number[digits..].starts_with('.'))
}

/// Returns whether tasks may have begun to write an object of that name: `part-r-00000`, or `errors-r-00000`
/// of a named output.
pub(super) fn is_written_by_tasks(name: &str) -> bool {
    let is_one = |(at, _): (usize, &str)| {
        let output = &name[..at];
        let rest = OsString::from(format!("{PART}{}", &name[at..]));
        (output == PART || NamedPart::is_name(output)) && is_part(&rest)
    };
    name.match_indices("-m-")
        .chain(name.match_indices("-r-"))
        .any(is_one)
}

/// Returns whether it is left from an unfinished commit of an earlier version.
pub(super) fn is_unfinished_success(name: &OsStr) -> bool {
    name == SUCCESS_UNFINISHED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_written_by_jobs_are_parts() {
        for name in [
            "part-r-00000",
            "part-m-00007",
            "part-r-123456",
            "part-r-00000.tsv",
            "part-r-00000.a.b",
        ] {
            assert!(is_part(OsStr::new(name)), "{name}");
        }
        for name in [
            "part-time-staff.csv",
            "part-r-0001",
            "part-r-00000x",
            "part-x-00000",
            "part-",
            "_SUCCESS",
        ] {
            assert!(!is_part(OsStr::new(name)), "{name}");
        }
        for name in ["part-r-00000", "errors-m-00007.tsv", "a-r-b-r-00001"] {
            assert!(is_written_by_tasks(name), "{name}");
        }
        for name in [
            "x.bin",
            "errors-r-1",
            "9-r-00000",
            "a b-r-00000",
            "_SUCCESS",
            "-r-00000",
        ] {
            assert!(!is_written_by_tasks(name), "{name}");
        }
    }

    #[test]
    fn work_of_store_output_has_a_local_place() {
        let task = TaskId {
            job: JobId(3),
            kind: TaskKind::Reduce,
            index: 1,
        };
        let attempt = AttemptId { task, number: 2 };
        let paths = JobPaths::new(
            Path::new("s3://b/out"),
            JobId(3),
            ClaimToken::from(7),
            "tsv",
        );
        assert_eq!(
            paths.promoted(attempt),
            Path::new("s3://b/out/part-r-00001.tsv")
        );
        assert_eq!(
            paths.stored_checkpoints().as_deref(),
            Some(Path::new(
                "s3://b/out/_temporary/checkpoint-0000000000000007"
            ))
        );
        for local in [
            paths.attempt(attempt),
            paths.segment(attempt),
            paths.checkpoint(attempt),
        ] {
            assert!(
                local.starts_with(paths.local_work()) && local.starts_with(std::env::temp_dir())
            );
        }
    }
}
