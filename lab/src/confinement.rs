//! Owns the memory a worker and its tasks may use in an experiment, so that two memory-hungry tasks do not
//! fit: which means this machine offers (the tier), a control group with a limit, and swap. Ending them again
//! belongs to the guard.

mod group;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use group::Hierarchy;
use napreduce_live::ByteSize;
use rustix::process::{Pid, geteuid};
use serde::Serialize;

use crate::guard::{Charge, Guard};
use crate::machine::{field, kibibytes};
use crate::process::CommandLine;

/// Where control groups are.
const GROUPS: &str = "/sys/fs/cgroup";
/// Starts a program in a scope of the user's own service manager.
const SCOPE_RUNNER: &str = "systemd-run";

/// What a worker is confined to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args, Serialize)]
pub struct MemoryLimit {
    /// Memory of a worker with hungry tasks
    #[arg(long = "memory-limit", value_name = "SIZE", default_value = "768MiB")]
    pub memory: ByteSize,
    /// The swap file for hungry tasks
    #[arg(long, value_name = "SIZE", default_value = "1536MiB")]
    pub swap: ByteSize,
}

/// How well a worker can be confined on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "tier", rename_all = "kebab-case")]
pub enum Tier {
    /// A swap file and a control group of the experiment's own: figures can be repeated.
    Own {
        /// 1 or 2, of the control groups.
        groups_version: u8,
    },
    /// A scope of the user's service manager, and the swap that the machine has.
    UserScope,
    /// None: tasks that would need it are left out.
    LightOnly { why: String },
}

impl Tier {
    /// In words.
    pub fn line(&self) -> String {
        match self {
            Tier::Own { groups_version } => {
                format!("own swap file and memory control group (version {groups_version})")
            }
            Tier::UserScope => "memory limit by a user scope, the machine's own swap".to_owned(),
            Tier::LightOnly { why } => format!("light-weight tasks only: {why}"),
        }
    }
}

/// The means, set up.
#[derive(Debug)]
pub struct Confinement {
    /// What it could set up.
    pub tier: Tier,
    limit: MemoryLimit,
    group: Option<PathBuf>,
}

impl Confinement {
    /// Sets up the best there is; what cannot be had is said by the tier. The swap file goes into `folder`.
    pub fn set_up(limit: MemoryLimit, folder: &Path, guard: &mut Guard) -> Confinement {
        let set_up = if geteuid().is_root() {
            Confinement::own(limit, folder, guard)
        } else {
            user_scope(limit).map(|()| Confinement { tier: Tier::UserScope, limit, group: None })
        };
        set_up.unwrap_or_else(|why| Confinement { tier: Tier::LightOnly { why }, limit, group: None })
    }

    fn own(limit: MemoryLimit, folder: &Path, guard: &mut Guard) -> Result<Confinement, String> {
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let hierarchy = Hierarchy::find(Path::new(GROUPS), &membership)?;
        let group = hierarchy.parent.join(format!("nap-lab-{}", std::process::id()));
        guard.take(&Charge::ControlGroup(group.clone())).map_err(|error| error.to_string())?;
        hierarchy.limit(&group, limit.memory)?;
        let swap = Charge::Swap { path: folder.join("swap"), bytes: limit.swap.bytes() };
        guard.take(&swap).map_err(|error| error.to_string())?;
        Ok(Confinement { tier: Tier::Own { groups_version: hierarchy.version }, limit, group: Some(group) })
    }

    /// A worker's command, as it is started in this confinement.
    pub fn wrap(&self, worker: CommandLine) -> CommandLine {
        match self.tier {
            Tier::UserScope => {
                let arguments = scope_arguments(self.limit.memory);
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                worker.started_by(SCOPE_RUNNER, &arguments)
            }
            _ => worker,
        }
    }

    /// Confines a worker that was just started, and so every task it will start.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn admit(&self, worker: Pid) -> Result<(), String> {
        let Some(group) = &self.group else { return Ok(()) };
        let members = group.join("cgroup.procs");
        fs::write(&members, worker.as_raw_nonzero().to_string())
            .map_err(|error| format!("cannot put a worker into {}: {error}", group.display()))
    }
}

fn scope_arguments(memory: ByteSize) -> [String; 6] {
    let limit = format!("MemoryMax={}", memory.bytes());
    ["--user", "--scope", "--quiet", "--collect", "-p", &limit].map(str::to_owned)
}

/// Whether the user's service manager limits memory, and there is swap to use.
fn user_scope(limit: MemoryLimit) -> Result<(), String> {
    let tried = Command::new(SCOPE_RUNNER)
        .args(scope_arguments(limit.memory))
        .arg("true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !tried.is_ok_and(|status| status.success()) {
        return Err(format!("not root, and {SCOPE_RUNNER} --user --scope does not limit memory here"));
    }
    let free = free_swap(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
    if free < limit.swap {
        return Err(format!(
            "not root, and of {} swap only {} is free",
            limit.swap.rounded(),
            free.rounded()
        ));
    }
    Ok(())
}

fn free_swap(meminfo: &str) -> ByteSize {
    field(meminfo, "SwapFree").and_then(|free| kibibytes(&free)).unwrap_or(ByteSize::new(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: MemoryLimit = MemoryLimit { memory: ByteSize::new(768 << 20), swap: ByteSize::new(1 << 30) };

    #[test]
    fn free_swap_is_read_from_the_kernels_report() {
        let report = "MemFree:  5 kB\nSwapTotal:  9 kB\nSwapFree:     2097148 kB\n";
        assert_eq!(free_swap(report), ByteSize::new(2_097_148 * 1024));
        assert_eq!(free_swap(""), ByteSize::new(0));
    }

    #[test]
    fn a_worker_in_a_scope_is_started_by_the_service_manager() {
        let confined = |tier| Confinement { tier, limit: LIMIT, group: None };
        let worker = || CommandLine::new("/bin/nap").arg("worker");
        assert_eq!(
            confined(Tier::UserScope).wrap(worker()).typed(),
            "systemd-run --user --scope --quiet --collect -p MemoryMax=805306368 /bin/nap worker"
        );
        assert_eq!(confined(Tier::Own { groups_version: 1 }).wrap(worker()).typed(), "/bin/nap worker");
    }

    #[test]
    fn every_tier_says_what_it_is() {
        let why = "no swap".to_owned();
        assert_eq!(Tier::LightOnly { why }.line(), "light-weight tasks only: no swap");
        assert!(Tier::Own { groups_version: 2 }.line().contains("version 2"));
        assert!(Tier::UserScope.line().contains("user scope"));
    }
}
