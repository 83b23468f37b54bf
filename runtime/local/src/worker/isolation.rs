//! Isolation of a worker's attempts: limits of memory and processes, and an environment without secrets.

use std::ffi::OsString;
use std::sync::Arc;

use napreduce_engine::FaultPlace;
use napreduce_protocol::{ByteSize, TaskError};
use rustix::process::Pid;

use super::configuration::{IsolationMode, IsolationRules};
use crate::process::{ControlGroup, ControlGroups, OutOfMemory, Processes};
use crate::world::Tasks;

/// Memory limit of an attempt in addition to a multiple of its task memory: the program and its libraries.
const PROGRAM_BYTES: u64 = 256 << 20;
/// Variables passed from the daemon to tasks, by name or by prefix.
const PASSED: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TERM",
    "JAVA_HOME",
    "LD_LIBRARY_PATH",
];
const PASSED_PREFIXES: [&str; 3] = ["LC_", "RUST_", "PYTHON"];

/// The isolation means of one worker.
#[derive(Debug)]
pub struct Isolation {
    rules: IsolationRules,
    /// The control groups for attempts.
    pub groups: Option<Arc<ControlGroups>>,
    /// The daemon's variables that are passed to tasks.
    pub(super) environment: Vec<(OsString, OsString)>,
}

impl Isolation {
    /// Detects the available means and logs them.
    pub fn begin(rules: &IsolationRules, worker: &str) -> Result<Isolation, String> {
        let wanted = matches!(rules.mode, IsolationMode::Auto | IsolationMode::Cgroup);
        let groups = match wanted.then(ControlGroups::create) {
            Some(Ok(groups)) => Some(groups),
            Some(Err(why)) if rules.mode == IsolationMode::Cgroup => {
                return Err(why);
            }
            Some(Err(why)) => {
                tracing::info!(target: "worker", worker = %worker, "no control groups; task memory is watched instead: {why}");
                None
            }
            None => None,
        };
        let passed = |name: &OsString| {
            let Some(name) = name.to_str() else {
                return false;
            };
            PASSED.contains(&name)
                || PASSED_PREFIXES
                    .iter()
                    .any(|prefix| name.starts_with(prefix))
                || rules
                    .pass_environment
                    .iter()
                    .any(|also| matches(also, name))
        };
        let environment = std::env::vars_os()
            .filter(|(name, _)| passed(name))
            .collect();
        Ok(Isolation {
            rules: rules.clone(),
            groups,
            environment,
        })
    }

    /// Returns a description for listings.
    pub fn in_words(&self) -> String {
        match (&self.groups, self.rules.mode) {
            (Some(groups), _) => format!("cgroup v{}", groups.version()),
            (None, IsolationMode::None) => "none".to_owned(),
            (None, _) => "watchdog".to_owned(),
        }
    }

    /// Returns the bounds of an attempt with this task memory.
    pub(super) fn bounds(&self, task_memory: u64) -> Option<Bounds> {
        if self.rules.mode == IsolationMode::None {
            return None;
        }
        let factor = self.rules.memory_factor;
        let memory_max = task_memory
            .saturating_mul(u64::from(factor))
            .saturating_add(PROGRAM_BYTES);
        let groups = self.groups.clone();
        Some(Bounds {
            task_memory,
            factor,
            memory_max,
            groups,
            group: None,
            is_watched: true,
        })
    }
}

/// Returns whether `name` equals `given`, or has its prefix if `given` ends in a star.
fn matches(given: &str, name: &str) -> bool {
    given
        .strip_suffix('*')
        .map_or(given == name, |beginning| name.starts_with(beginning))
}

/// The limits of one attempt including its child processes.
#[derive(Debug)]
pub(super) struct Bounds {
    task_memory: u64,
    factor: u32,
    memory_max: u64,
    groups: Option<Arc<ControlGroups>>,
    group: Option<ControlGroup>,
    /// Whether the worker compares the memory with the limit, since no group does.
    is_watched: bool,
}

impl Bounds {
    /// Applies the limits to a process and its children. A prestarted process may already be in a group,
    /// `ahead`.
    pub(super) async fn around(
        mut self,
        process: Pid,
        mut ahead: Option<ControlGroup>,
        tasks: &Tasks,
    ) -> Bounds {
        let Some(groups) = self.groups.clone() else {
            return self;
        };
        let memory_max = self.memory_max;
        let is_limited = ahead
            .as_mut()
            .is_some_and(|group| group.limit_to(memory_max).is_ok());
        if is_limited && ahead.as_ref().is_some_and(ControlGroup::is_current) {
            (self.group, self.is_watched) = (ahead, false);
            return self;
        }
        // Adding a process to a cgroup can block in the kernel.
        let entering = tasks.blocking(move || {
            let taken = groups.take(memory_max);
            match taken.and_then(|group| group.admit(process).map(|()| group)) {
                Ok(group) => (Some(group), false),
                // Dropping the group of a prestarted process would kill the process.
                Err(error) => {
                    tracing::warn!(target: "worker", "no control group for an attempt: {error}");
                    (ahead, !is_limited)
                }
            }
        });
        if let Ok((group, is_watched)) = entering.await {
            (self.group, self.is_watched) = (group, is_watched);
        }
        self
    }

    /// Returns whether no processes are left to wait for.
    pub(super) fn are_deserted(&self) -> bool {
        self.group.as_ref().is_none_or(ControlGroup::is_deserted)
    }

    /// Returns the error if the kernel killed a process of the attempt for lack of memory.
    pub(super) fn kernel_kill(&self) -> Option<TaskError> {
        match self.group.as_ref()?.ran_out()? {
            OutOfMemory::Group if !self.is_watched => Some(self.error()),
            OutOfMemory::Group | OutOfMemory::Elsewhere => Some(self.error_elsewhere()),
        }
    }

    /// Returns whether a process that no cgroup limits exceeds its memory limit.
    pub(super) fn are_exceeded_by(&self, processes: &dyn Processes, process: Pid) -> bool {
        self.is_watched
            && processes
                .memory_of(process)
                .is_ok_and(|memory| memory.resident > self.memory_max)
    }

    /// Returns the error for an OOM kill of an attempt within its own limit.
    fn error_elsewhere(&self) -> TaskError {
        TaskError::retryable(format!(
            "the kernel killed the attempt for lack of memory below its own limit of {}: the memory of the machine, or of \
             an enclosing group such as a pod, is exhausted; give the worker fewer slots or more memory, or lower \
             --task-memory",
            ByteSize::new(self.memory_max).rounded(),
        ))
        .at(FaultPlace::TaskMemory)
    }

    /// Returns the error for an attempt that exceeded its limit.
    pub(super) fn error(&self) -> TaskError {
        let size = |bytes: u64| ByteSize::new(bytes).rounded();
        TaskError::retryable(format!(
            "the attempt exceeded its memory limit of {} ({} times its task memory of {}, and {} for the program) and was \
             killed; hold less in the program, raise --task-memory, or start workers with a larger --memory-factor",
            size(self.memory_max),
            self.factor,
            size(self.task_memory),
            size(PROGRAM_BYTES),
        ))
        .at(FaultPlace::TaskMemory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Spawner;
    use crate::world::World;

    fn rules(mode: IsolationMode) -> IsolationRules {
        IsolationRules {
            mode,
            memory_factor: 4,
            pass_environment: vec!["CARGO_MANIFEST_DIR".to_owned()],
        }
    }

    #[test]
    fn memory_limit_is_task_memory_multiple_plus_program() {
        let machine = Spawner::for_one_job(false, 0, 0);
        let watched =
            Isolation::begin(&rules(IsolationMode::Watchdog), "w").expect("needs nothing");
        assert_eq!(watched.in_words(), "watchdog");
        let bounds = watched.bounds(256 << 20).expect("bounds");
        assert_eq!(bounds.memory_max, 1280 << 20);
        assert!(!bounds.are_exceeded_by(&machine, rustix::process::getpid()));
        assert!(watched.bounds(u64::MAX).is_some());
        let tiny = Bounds {
            memory_max: 4096,
            ..bounds
        };
        assert!(
            tiny.are_exceeded_by(&machine, rustix::process::getpid())
                && tiny.kernel_kill().is_none()
        );
        let error = tiny.error();
        assert_eq!(error.place, FaultPlace::TaskMemory);
        assert!(
            error.message.contains("4 times its task memory of 256 MiB"),
            "{}",
            error.message
        );
        let none = Isolation::begin(&rules(IsolationMode::None), "w").expect("needs nothing");
        assert!(none.bounds(1).is_none() && none.in_words() == "none");
    }

    #[tokio::test]
    async fn process_in_group_without_limit_is_watched() {
        let folder = tempfile::tempdir().expect("a directory");
        let (groups, ahead) = ControlGroups::without_limits(folder.path());
        let task_memory = 1;
        let factor = 4;
        let memory_max = 4096;
        let groups = Some(groups);
        let group = None;
        let is_watched = true;
        let bounds = Bounds {
            task_memory,
            factor,
            memory_max,
            groups,
            group,
            is_watched,
        };
        let itself = rustix::process::getpid();
        let bounds = bounds
            .around(itself, Some(ahead), &World::real().tasks)
            .await;
        assert!(
            bounds.group.is_some(),
            "dropping the group would kill the process"
        );
        assert!(bounds.are_exceeded_by(&Spawner::for_one_job(false, 0, 0), itself));
    }

    #[test]
    fn task_environment_has_standard_and_requested_variables() {
        let isolation = Isolation::begin(&rules(IsolationMode::None), "w").expect("needs nothing");
        let names: Vec<&str> = isolation
            .environment
            .iter()
            .filter_map(|(name, _)| name.to_str())
            .collect();
        assert!(
            names.contains(&"PATH") && names.contains(&"CARGO_MANIFEST_DIR"),
            "{names:?}"
        );
        assert!(
            !names.iter().any(|name| name.starts_with("CARGO_PKG")),
            "{names:?}"
        );
    }

    #[test]
    fn star_matches_rest_of_variable_name() {
        assert!(matches("AWS_*", "AWS_REGION") && matches("AWS_REGION", "AWS_REGION"));
        assert!(!matches("AWS_*", "MY_AWS_REGION") && !matches("AWS_", "AWS_REGION"));
    }
}
