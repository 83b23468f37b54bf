//! Checks of the output directories at the end of a run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use napreduce_engine::{JobId, TaskId};

use crate::facts::Facts;
use crate::log::Log;
use crate::workload::SimJob;

/// Checks an output directory that these jobs wanted: it has the output of one of those that succeeded, as an
/// undisturbed run writes it, and nothing else. If none succeeded, nothing is left.
pub fn check_output(output: &Path, jobs: &[SimJob], facts: &Facts, log: &Log) {
    let mut succeeded = Vec::new();
    for job in jobs {
        if facts.is_job_forgotten(job.parameters.number) {
            return;
        }
        if facts.has_succeeded(job.parameters.number) {
            succeeded.push(job);
        }
    }
    let mut differences = Vec::new();
    for job in &succeeded {
        let found = differences_from(output, Some(job));
        if found.is_empty() {
            return;
        }
        differences.push(found);
    }
    if succeeded.is_empty() {
        differences.push(differences_from(output, None));
    }
    for difference in differences.into_iter().flatten() {
        log.violation(output.display(), difference);
    }
}

/// Returns how a directory differs from the output of a job, or from an empty one.
fn differences_from(output: &Path, job: Option<&SimJob>) -> Vec<String> {
    let mut differences = Vec::new();
    let mut names = BTreeSet::new();
    if let Some(job) = job {
        names.insert("_SUCCESS".to_owned());
        let parameters = &job.parameters;
        let letter = if parameters.reduces == 0 { 'm' } else { 'r' };
        // The text of a part does not depend on the number of its job in the cluster.
        let job = JobId(parameters.number);
        let parts = parameters.parts(|kind, index| TaskId { job, kind, index });
        for (index, text) in parts.iter().enumerate() {
            let name = format!("part-{letter}-{index:05}");
            match fs::read_to_string(output.join(&name)) {
                Ok(found) if found == *text => {}
                Ok(found) => differences.push(format!("{name} is {found:?}, not {text:?}")),
                Err(error) => differences.push(format!("{name}: {error}")),
            }
            names.insert(name);
        }
    }
    let mut found = BTreeSet::new();
    // A directory without a successful job may be missing.
    for entry in fs::read_dir(output).into_iter().flatten().flatten() {
        found.insert(entry.file_name().to_string_lossy().into_owned());
    }
    for name in found.difference(&names) {
        let inside = files_in(&output.join(name));
        differences.push(format!("{name} is left; files in it: {inside:?}"));
    }
    if job.is_some() && !found.contains("_SUCCESS") {
        differences.push("_SUCCESS is missing".to_owned());
    }
    differences
}

/// Returns the paths of all entries in a directory.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        paths.extend(files_in(&path));
        paths.push(path);
    }
    paths.sort();
    paths
}
