//! Monitors free disk space. A shortage begins below a reserve and ends at twice the reserve, to avoid
//! flapping. Quotas are not visible here; they only show in failed writes.

use std::io;
use std::path::{Path, PathBuf};

use napreduce_local::worker::DiskChange;
use rustix::fs::{StatVfs, StatVfsMountFlags, statvfs};

/// Default reserve, unless a share of a small disk is less.
const RESERVE_BYTES: u64 = 64 << 20;
const RESERVE_SHARE: u64 = 50;

/// Returns the free space of the disk of a directory; 0 if it cannot be read.
pub(super) fn free_bytes(directory: &Path) -> u64 {
    statvfs(directory).map_or(0, |found| free_of(&found))
}

fn free_of(found: &StatVfs) -> u64 {
    found.f_bavail.saturating_mul(found.f_frsize)
}

/// The disk of a directory.
#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
    /// Minimum free space; `None` to derive it from the disk's size.
    reserve: Option<u64>,
    short: bool,
}

impl Disk {
    pub(super) fn new(path: PathBuf, reserve: Option<u64>) -> Disk {
        Disk {
            path,
            reserve,
            short: false,
        }
    }

    /// Checks the disk; returns its state if that has changed.
    pub(super) fn check(&mut self) -> Option<DiskChange> {
        let found = statvfs(&self.path).map_err(io::Error::from);
        self.judge(found.as_ref())
    }

    fn judge(&mut self, found: Result<&StatVfs, &io::Error>) -> Option<DiskChange> {
        let lacks = self.lacks(found);
        let was_short = self.short;
        self.short = lacks.is_some();
        if self.short == was_short {
            return None;
        }
        Some(DiskChange { lacks })
    }

    fn lacks(&self, found: Result<&StatVfs, &io::Error>) -> Option<String> {
        let path = self.path.display();
        let found = match found {
            Ok(found) => found,
            Err(error) => return Some(format!("disk: cannot inspect {path}: {error}")),
        };
        if found.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return Some(format!("disk: {path} is read-only"));
        }
        let free = free_of(found);
        let size = found.f_blocks.saturating_mul(found.f_frsize);
        let reserve = self
            .reserve
            .unwrap_or(RESERVE_BYTES.min(size / RESERVE_SHARE));
        let wanted = if self.short {
            reserve.saturating_mul(2)
        } else {
            reserve
        };
        if free < wanted {
            return Some(format!(
                "disk: {} KiB free at {path} (minimum {} KiB); free some space there",
                free >> 10,
                wanted >> 10
            ));
        }
        // Some file systems do not count inodes.
        let has_no_inodes = found.f_files > 0 && found.f_favail == 0;
        if has_no_inodes {
            return Some(format!(
                "disk: no free inodes at {path}; remove some files there"
            ));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_free(free: u64) -> StatVfs {
        StatVfs {
            f_bavail: free,
            f_frsize: 1,
            f_blocks: 100_000,
            ..statvfs("/").expect("there is a root")
        }
    }

    #[test]
    fn free_space_of_absent_directory_is_unknown() {
        assert!(free_bytes(Path::new("/proc/self/cwd")) > 0);
        assert_eq!(free_bytes(Path::new("/absent")), 0);
        assert_eq!(free_of(&with_free(7)), 7);
    }

    #[test]
    fn disk_is_short_below_reserve_until_twice_reserve() {
        let mut disk = Disk::new(PathBuf::from("/"), Some(1_000));
        let mut look = |free: u64| {
            let found = StatVfs {
                f_flag: StatVfsMountFlags::empty(),
                ..with_free(free)
            };
            disk.judge(Ok(&found)).map(|change| change.lacks.is_some())
        };
        for (free, news) in [
            (1_000, None),
            (999, Some(true)),
            (1_999, None),
            (2_000, Some(false)),
            (1_000, None),
            (0, Some(true)),
        ] {
            assert_eq!(look(free), news, "{free}");
        }
    }

    #[test]
    fn reserve_of_small_disk_is_a_share() {
        let mut disk = Disk::new(PathBuf::from("/"), None);
        let mut look = |free: u64| {
            let found = StatVfs {
                f_flag: StatVfsMountFlags::empty(),
                ..with_free(free)
            };
            disk.judge(Ok(&found)).and_then(|change| change.lacks)
        };
        assert_eq!(look(2_000), None);
        let shortage = look(1_999).expect("short");
        assert!(
            shortage.contains("KiB); free some space there"),
            "{shortage}"
        );
    }
}
