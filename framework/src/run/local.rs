//! Jobs on this machine.

use std::path::PathBuf;
use std::sync::Arc;

use napreduce_local::{Chain, EmbeddedSettings, ProgressMode, start_embedded, start_on_threads};

use super::handle::JobHandle;
use super::target::Start;
use super::{JobRequest, lasting_path};
use crate::limits;
use crate::program::dataset::Files;
use crate::program::plan::{Planned, PlannedJob, Surroundings};
use crate::program::typed_paths::TypedPaths;
use crate::program::{CodeOnly, Error, check_initialised};

/// This machine as a place for jobs. By default tasks are processes, as many at once as there are cores.
///
/// ```
/// use napreduce::run::Local;
///
/// let small = Local::default().slots(2);
/// let in_a_test = Local::threads();
/// # let _ = (small, in_a_test);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Local {
    slots: Option<u32>,
    on_threads: bool,
    prints: bool,
    directory: Option<PathBuf>,
}

impl Local {
    /// Runs tasks on threads of this process, for tests and small data. A job takes milliseconds and needs no
    /// [`init`](crate::init), but its tasks cannot be suspended, and a crash of one is a crash of the program.
    pub fn threads() -> Local {
        Local {
            on_threads: true,
            ..Local::default()
        }
    }

    /// Sets how many map tasks, and how many reduce tasks, run at once. Default: the number of cores.
    pub fn slots(mut self, slots: u32) -> Local {
        self.slots = Some(slots);
        self
    }

    /// Passes on what tasks print, to the standard error of this program. By default it is discarded.
    pub fn task_output(mut self) -> Local {
        self.prints = true;
        self
    }

    /// Sets the directory for temporary outputs. Default: that of the system, which is often `/tmp`.
    pub fn temporary_directory(mut self, directory: impl Into<PathBuf>) -> Local {
        self.directory = Some(directory.into());
        self
    }

    fn embedded(&self) -> EmbeddedSettings {
        let defaults = EmbeddedSettings::default();
        EmbeddedSettings {
            slots: self.slots.unwrap_or(defaults.slots),
            progress: ProgressMode::Never,
            quiet: !self.prints,
        }
    }
}

impl Surroundings for Local {
    fn default_reduces(&mut self) -> Result<u32, Error> {
        Ok(self.embedded().slots)
    }

    fn readable_path(&mut self, path: PathBuf) -> Result<PathBuf, Error> {
        lasting_path(path)
    }
}

impl Start for Local {
    fn start(&self, job: JobRequest<()>) -> Result<JobHandle<()>, Error> {
        if !self.on_threads {
            check_initialised()?;
        }
        limits::check("slots", self.embedded().slots, &limits::SLOTS).map_err(Error::Usage)?;
        let output = match &job.output {
            Some(directory) => Files::named(directory.clone()),
            None => {
                let place = self.directory.clone().unwrap_or_else(std::env::temp_dir);
                let mut chain = Chain::next_to(&place.join("napreduce"))?;
                chain.begin(None)?;
                Files::temporary(chain)
            }
        };
        let definition = if self.on_threads {
            PlannedJob::Found(job.definition)
        } else {
            PlannedJob::of(job.definition)
        };
        let Planned { mut plan, warnings } =
            job.plan(&definition, &output, true, &mut self.clone())?;
        // The program may change its working directory meanwhile.
        TypedPaths::from_here()?.make_absolute(&mut plan);
        let started = if self.on_threads {
            start_on_threads(plan, Arc::new(CodeOnly), &self.embedded())?
        } else {
            start_embedded(plan, &self.embedded())?
        };
        Ok(JobHandle::new(
            started,
            Arc::new(output),
            job.described.files,
            warnings,
        ))
    }
}
