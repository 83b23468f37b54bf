//! Owns the kernel's control groups for memory, of both versions: where a group may be made, and how it is
//! limited. Making and removing the folder is the guard's.

use std::fs;
use std::path::{Path, PathBuf};

use napreduce_live::ByteSize;

/// Where groups with a limit of memory can be made.
#[derive(Debug, PartialEq, Eq)]
pub struct Hierarchy {
    pub version: u8,
    /// A group is a folder in it.
    pub parent: PathBuf,
}

impl Hierarchy {
    /// The one that limits memory below `root`; `membership` is what the kernel says of this process.
    pub fn find(root: &Path, membership: &str) -> Result<Hierarchy, String> {
        let first = root.join("memory");
        if first.join("memory.limit_in_bytes").exists() {
            let own = own_group(membership, "memory").map(|path| first.join(path));
            let parent = own.filter(|path| path.is_dir()).unwrap_or(first);
            return Ok(Hierarchy { version: 1, parent });
        }
        let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        if !controllers.split_whitespace().any(|name| name == "memory") {
            return Err(format!("no control groups in {} limit memory", root.display()));
        }
        // A group with processes in it may have none below, so this process's own is no place for it.
        let switch = root.join("cgroup.subtree_control");
        let on = fs::read_to_string(&switch).unwrap_or_default();
        if !on.split_whitespace().any(|name| name == "memory") {
            fs::write(&switch, "+memory")
                .map_err(|error| format!("cannot switch on memory in {}: {error}", switch.display()))?;
        }
        Ok(Hierarchy { version: 2, parent: root.to_owned() })
    }

    /// Limits a group. Swapping is the last resort of the kernel then: page cache goes first.
    pub fn limit(&self, group: &Path, memory: ByteSize) -> Result<(), String> {
        let values = match self.version {
            // 0 would mean that nothing is swapped out and somebody is killed instead.
            1 => vec![
                ("memory.limit_in_bytes", memory.bytes().to_string()),
                ("memory.swappiness", "1".to_owned()),
            ],
            _ => vec![("memory.max", memory.bytes().to_string()), ("memory.swap.max", "max".to_owned())],
        };
        for (name, value) in values {
            let path = group.join(name);
            fs::write(&path, value).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        Ok(())
    }
}

/// The path of this process's group under a controller of version 1, without its leading slash.
fn own_group<'a>(membership: &'a str, controller: &str) -> Option<&'a str> {
    membership.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let found = controllers.split(',').any(|name| name == controller);
        found.then(|| path.trim_start_matches('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: ByteSize = ByteSize::new(1 << 20);

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
        let mine = Hierarchy { version: 1, parent: memory.join("mine") };
        assert_eq!(found("5:cpu,cpuacct:/other\n4:memory:/mine\n"), mine);
        assert_eq!(found("4:memory:/elsewhere\n").parent, memory, "one that cannot be seen here");
        assert_eq!(found("").parent, memory);
        mine.limit(&mine.parent, LIMIT).unwrap();
        assert_eq!(written(&mine.parent, "memory.limit_in_bytes"), "1048576");
        assert_eq!(written(&mine.parent, "memory.swappiness"), "1");
    }

    #[test]
    fn version_2_has_memory_switched_on() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        fs::write(root.path().join("cgroup.subtree_control"), "cpu\n").unwrap();
        let found = Hierarchy::find(root.path(), "0::/user\n").unwrap();
        assert_eq!(found, Hierarchy { version: 2, parent: root.path().to_owned() });
        assert_eq!(written(root.path(), "cgroup.subtree_control"), "+memory");
        found.limit(root.path(), LIMIT).unwrap();
        assert_eq!(written(root.path(), "memory.max"), "1048576");
    }

    #[test]
    fn a_machine_without_limits_says_so() {
        let root = tempfile::tempdir().unwrap();
        let error = Hierarchy::find(root.path(), "").unwrap_err();
        assert!(error.contains("limit memory"), "{error}");
        let hierarchy = Hierarchy { version: 2, parent: "/nowhere".into() };
        let error = hierarchy.limit(Path::new("/nowhere"), LIMIT).unwrap_err();
        assert!(error.starts_with("cannot write /nowhere/memory.max"), "{error}");
    }
}
