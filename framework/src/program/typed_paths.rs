//! Conversion of paths: absolute for other processes, whose working directories differ; as typed in messages
//! to the user.

use std::path::{Path, PathBuf};

#[cfg(any(feature = "cluster", feature = "guests"))]
use napreduce_protocol::JobError;
use napreduce_protocol::{JobPlan, StorageScheme};

use super::error::Error;

/// The directory of relative paths.
pub(crate) struct TypedPaths {
    here: PathBuf,
}

impl TypedPaths {
    pub(crate) fn from_here() -> Result<TypedPaths, Error> {
        let here = std::env::current_dir()
            .map_err(|error| Error::Usage(format!("cannot find the current directory: {error}")))?;
        Ok(TypedPaths { here })
    }

    /// Makes the paths of a plan absolute; returns whether any was relative.
    pub(crate) fn make_absolute(&self, plan: &mut JobPlan) -> bool {
        let is_relative =
            |path: &Path| path.is_relative() && StorageScheme::from_path(path).is_none();
        let relative = is_relative(&plan.output)
            || plan
                .splits
                .iter()
                .flat_map(|split| &split.parts)
                .any(|part| is_relative(&part.path));
        let absolute = |path: &Path| match StorageScheme::from_path(path) {
            None => self.here.join(path),
            // An object has the same name everywhere.
            Some(_) => path.to_owned(),
        };
        plan.output = absolute(&plan.output);
        for part in plan.splits.iter_mut().flat_map(|split| &mut split.parts) {
            part.path = absolute(&part.path);
        }
        relative
    }

    /// Restores the paths in an error as typed, if one was relative.
    #[cfg(any(feature = "cluster", feature = "guests"))]
    pub(super) fn as_typed(&self, mut error: JobError, relative: bool) -> JobError {
        if !relative || self.here == Path::new("/") {
            return error;
        }
        match &mut error {
            JobError::Failed { reason: shown, .. }
            | JobError::Killed { reason: shown, .. }
            | JobError::Cluster { reason: shown, .. }
            | JobError::Interrupted { left: shown, .. }
            | JobError::OutputExists { path: shown }
            | JobError::OutputInUse { path: shown }
            | JobError::OutputUnfinished { path: shown }
            | JobError::OutputRefused { path: shown, .. }
            | JobError::OutputUnusable { path: shown, .. } => {
                *shown = shown.replace(&format!("{}/", self.here.display()), "");
            }
            _ => {}
        }
        error
    }
}
