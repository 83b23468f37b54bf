//! The memory limit of a worker and its tasks, so that two memory-hungry tasks do not fit: the means of this machine
//! (the tier), a control group with a limit, and swap. The guard removes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::Args;
use napreduce_protocol::ByteSize;
use rustix::process::{Pid, geteuid};
use serde::Serialize;

use crate::guard::{Charge, Guard, make_swap};
use crate::machine::{field, kibibytes};
use crate::process::CommandLine;

const GROUPS: &str = "/sys/fs/cgroup";
/// Starts a program in a scope of the user's own service manager.
const SCOPE_RUNNER: &str = "systemd-run";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Args, Serialize)]
pub struct MemoryLimit {
    /// Memory of a worker with hungry tasks
    #[arg(long = "memory-limit", value_name = "SIZE", default_value = "768MiB")]
    pub memory: ByteSize,
    /// The swap file for hungry tasks
    #[arg(long, value_name = "SIZE", default_value = "1536MiB")]
    pub swap: ByteSize,
}

/// The means of this machine to limit the memory of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "tier", rename_all = "kebab-case")]
pub enum Tier {
    /// A swap file and a control group of the experiment: figures are reproducible.
    Own { groups_version: u8 },
    /// A scope of the user's service manager, and the swap that the machine has.
    UserScope,
    /// None: memory-hungry tasks are left out.
    LightOnly { why: String },
}

impl Tier {
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

#[derive(Debug)]
pub struct Confinement {
    pub tier: Tier,
    limit: MemoryLimit,
    group: Option<PathBuf>,
}

impl Confinement {
    /// Sets up the best tier of this machine. The swap file is created in `folder`.
    pub fn set_up(limit: MemoryLimit, folder: &Path, guard: &mut Guard) -> Confinement {
        let set_up = if geteuid().is_root() {
            Confinement::own(limit, folder, guard)
        } else {
            user_scope(limit).map(|()| Confinement {
                tier: Tier::UserScope,
                limit,
                group: None,
            })
        };
        set_up.unwrap_or_else(|why| Confinement {
            tier: Tier::LightOnly { why },
            limit,
            group: None,
        })
    }

    fn own(limit: MemoryLimit, folder: &Path, guard: &mut Guard) -> Result<Confinement, String> {
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let hierarchy = Hierarchy::find(Path::new(GROUPS), &membership)?;
        let group = hierarchy
            .parent
            .join(format!("nap-lab-{}", std::process::id()));
        guard
            .take(&Charge::ControlGroup(group.clone()))
            .map_err(|error| error.to_string())?;
        fs::create_dir(&group)
            .map_err(|error| format!("cannot make {}: {error}", group.display()))?;
        hierarchy.limit(&group, limit.memory)?;
        let swap = folder.join("swap");
        guard
            .take(&Charge::Swap(swap.clone()))
            .map_err(|error| error.to_string())?;
        make_swap(&swap, limit.swap.bytes())
            .map_err(|error| format!("cannot swap to {}: {error:#}", swap.display()))?;
        Ok(Confinement {
            tier: Tier::Own {
                groups_version: hierarchy.version,
            },
            limit,
            group: Some(group),
        })
    }

    /// The command that starts a worker in this confinement.
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

    /// Confines a worker that was just started, and thereby its later tasks.
    pub fn admit(&self, worker: Pid) -> Result<()> {
        let Some(group) = &self.group else {
            return Ok(());
        };
        let members = group.join("cgroup.procs");
        fs::write(&members, worker.as_raw_nonzero().to_string())
            .with_context(|| format!("cannot put a worker into {}", group.display()))
    }
}

fn scope_arguments(memory: ByteSize) -> [String; 6] {
    let limit = format!("MemoryMax={}", memory.bytes());
    ["--user", "--scope", "--quiet", "--collect", "-p", &limit].map(str::to_owned)
}

/// Checks that the user's service manager limits memory and that enough swap is free.
fn user_scope(limit: MemoryLimit) -> Result<(), String> {
    let tried = Command::new(SCOPE_RUNNER)
        .args(scope_arguments(limit.memory))
        .arg("true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !tried.is_ok_and(|status| status.success()) {
        return Err(format!(
            "not root, and {SCOPE_RUNNER} --user --scope does not limit memory here"
        ));
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
    field(meminfo, "SwapFree")
        .and_then(|free| kibibytes(&free))
        .unwrap_or(ByteSize::new(0))
}

/// A hierarchy of control groups that limits memory.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    version: u8,
    /// The folder for new groups.
    parent: PathBuf,
}

impl Hierarchy {
    /// The one below `root`; `membership` is `/proc/self/cgroup`.
    fn find(root: &Path, membership: &str) -> Result<Hierarchy, String> {
        let first = root.join("memory");
        if first.join("memory.limit_in_bytes").exists() {
            let own = own_group(membership, "memory").map(|path| first.join(path));
            let parent = own.filter(|path| path.is_dir()).unwrap_or(first);
            return Ok(Hierarchy { version: 1, parent });
        }
        let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        if !controllers.split_whitespace().any(|name| name == "memory") {
            return Err(format!(
                "no control groups in {} limit memory",
                root.display()
            ));
        }
        // A group with processes may not have groups, so the group of this process cannot be the parent.
        let switch = root.join("cgroup.subtree_control");
        let on = fs::read_to_string(&switch).unwrap_or_default();
        if !on.split_whitespace().any(|name| name == "memory") {
            fs::write(&switch, "+memory").map_err(|error| {
                format!("cannot switch on memory in {}: {error}", switch.display())
            })?;
        }
        Ok(Hierarchy {
            version: 2,
            parent: root.to_owned(),
        })
    }

    /// Limits the memory of a group. The kernel evicts its page cache before it swaps.
    fn limit(&self, group: &Path, memory: ByteSize) -> Result<(), String> {
        let values = match self.version {
            // With 0 the kernel would kill instead of swapping.
            1 => vec![
                ("memory.limit_in_bytes", memory.bytes().to_string()),
                ("memory.swappiness", "1".to_owned()),
            ],
            _ => vec![
                ("memory.max", memory.bytes().to_string()),
                ("memory.swap.max", "max".to_owned()),
            ],
        };
        for (name, value) in values {
            let path = group.join(name);
            fs::write(&path, value)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        Ok(())
    }
}

/// The path of this process's group under a controller of version 1, without its leading slash.
fn own_group<'a>(membership: &'a str, controller: &str) -> Option<&'a str> {
    membership.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let path = fields.next()?;
        let found = controllers.split(',').any(|name| name == controller);
        found.then(|| path.trim_start_matches('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: MemoryLimit = MemoryLimit {
        memory: ByteSize::new(768 << 20),
        swap: ByteSize::new(1 << 30),
    };

    #[test]
    fn free_swap_is_parsed() {
        let report = "MemFree:  5 kB\nSwapTotal:  9 kB\nSwapFree:     2097148 kB\n";
        assert_eq!(free_swap(report), ByteSize::new(2_097_148 * 1024));
        assert_eq!(free_swap(""), ByteSize::new(0));
    }

    #[test]
    fn scoped_worker_is_started_by_the_service_manager() {
        let confined = |tier| Confinement {
            tier,
            limit: LIMIT,
            group: None,
        };
        let worker = || CommandLine::new("/bin/nap").arg("worker");
        assert_eq!(
            confined(Tier::UserScope).wrap(worker()).typed(),
            "systemd-run --user --scope --quiet --collect -p MemoryMax=805306368 /bin/nap worker"
        );
        assert_eq!(
            confined(Tier::Own { groups_version: 1 })
                .wrap(worker())
                .typed(),
            "/bin/nap worker"
        );
    }

    #[test]
    fn tiers_are_named_in_reports() {
        let why = "no swap".to_owned();
        assert_eq!(
            Tier::LightOnly { why }.line(),
            "light-weight tasks only: no swap"
        );
        assert!(Tier::Own { groups_version: 2 }.line().contains("version 2"));
        assert!(Tier::UserScope.line().contains("user scope"));
    }

    const MIB: ByteSize = ByteSize::new(1 << 20);

    fn written(group: &Path, name: &str) -> String {
        fs::read_to_string(group.join(name)).unwrap()
    }

    #[test]
    fn version_1_is_found_below_the_group_of_this_process() {
        let root = tempfile::tempdir().unwrap();
        let memory = root.path().join("memory");
        fs::create_dir_all(memory.join("mine")).unwrap();
        fs::write(memory.join("memory.limit_in_bytes"), "").unwrap();
        let found = |membership| Hierarchy::find(root.path(), membership).unwrap();
        let mine = Hierarchy {
            version: 1,
            parent: memory.join("mine"),
        };
        assert_eq!(found("5:cpu,cpuacct:/other\n4:memory:/mine\n"), mine);
        assert_eq!(
            found("4:memory:/elsewhere\n").parent,
            memory,
            "one that cannot be seen here"
        );
        assert_eq!(found("").parent, memory);
        mine.limit(&mine.parent, MIB).unwrap();
        assert_eq!(written(&mine.parent, "memory.limit_in_bytes"), "1048576");
        assert_eq!(written(&mine.parent, "memory.swappiness"), "1");
    }

    #[test]
    fn version_2_enables_the_memory_controller() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        fs::write(root.path().join("cgroup.subtree_control"), "cpu\n").unwrap();
        let found = Hierarchy::find(root.path(), "0::/user\n").unwrap();
        assert_eq!(
            found,
            Hierarchy {
                version: 2,
                parent: root.path().to_owned()
            }
        );
        assert_eq!(written(root.path(), "cgroup.subtree_control"), "+memory");
        found.limit(root.path(), MIB).unwrap();
        assert_eq!(written(root.path(), "memory.max"), "1048576");
    }

    #[test]
    fn missing_memory_controller_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let error = Hierarchy::find(root.path(), "").unwrap_err();
        assert!(error.contains("limit memory"), "{error}");
        let hierarchy = Hierarchy {
            version: 2,
            parent: "/nowhere".into(),
        };
        let error = hierarchy.limit(Path::new("/nowhere"), MIB).unwrap_err();
        assert!(
            error.starts_with("cannot write /nowhere/memory.max"),
            "{error}"
        );
    }
}
