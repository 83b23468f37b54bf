//! The surroundings of an experiment: the interrupt, its folders, and where progress is printed.

use std::fmt;
use std::path::PathBuf;

use crate::machine::{Machine, load_at_start};
use crate::process::Interrupt;
use crate::workspace::{WorkFolder, WorkSettings};

pub struct Session {
    /// Ends the experiment early.
    pub interrupt: Interrupt,
    pub work: WorkSettings,
    /// The folder of the programs that are measured.
    pub binaries: PathBuf,
    print: Box<dyn Fn(&str)>,
}

impl Session {
    /// `print` prints one line of progress.
    pub fn new(
        interrupt: Interrupt,
        work: WorkSettings,
        binaries: PathBuf,
        print: impl Fn(&str) + 'static,
    ) -> Session {
        // Later load is that of the experiment.
        load_at_start();
        Session {
            interrupt,
            work,
            binaries,
            print: Box::new(print),
        }
    }

    pub fn warn_if_busy(&self) {
        if let Some(warning) = Machine::describe().warning() {
            self.log(format!("WARNING: {warning}"));
        }
    }

    pub fn log_kept_folder(&self, work: &WorkFolder) {
        if self.work.keep {
            self.log(format!("keeping everything in {}", work.path().display()));
        }
    }

    pub fn log(&self, line: impl AsRef<str>) {
        (self.print)(line.as_ref());
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("interrupt", &self.interrupt)
            .finish_non_exhaustive()
    }
}
