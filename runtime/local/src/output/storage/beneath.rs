//! Opens files beneath a directory without following symbolic links: with `openat2`, or step by step if the
//! kernel does not support it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// Opens the relative path `path` beneath `root`; fails if a component is a symbolic link.
pub(super) fn open_beneath(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    match openat2(
        root,
        path,
        flags,
        mode,
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    ) {
        // The kernel is older than Linux 5.6, or a system call filter rejects `openat2`.
        Err(Errno::NOSYS | Errno::PERM) => open_by_steps(root, path, flags, mode),
        opened => Ok(opened?),
    }
}

/// Emulates `openat2`: opens one component at a time; a symbolic link or `..` is an error.
fn open_by_steps(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => return Err(Errno::XDEV.into()),
        }
    }
    let Some((last, parents)) = names.split_last() else {
        return Ok(openat(root, ".", flags, mode)?);
    };
    let mut directory: Option<OwnedFd> = None;
    let step = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::PATH | OFlags::CLOEXEC;
    for name in parents {
        let within = directory.as_ref().map_or(root, AsFd::as_fd);
        directory = Some(openat(within, *name, step, Mode::empty())?);
    }
    let within = directory.as_ref().map_or(root, AsFd::as_fd);
    Ok(openat(within, *last, flags | OFlags::NOFOLLOW, mode)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn both_ways_open_what_is_beneath_and_no_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let inside = folder.path().join("inside");
        fs::create_dir_all(inside.join("deep")).expect("made");
        fs::write(inside.join("deep/file"), "x").expect("written");
        fs::write(folder.path().join("victim"), "x").expect("written");
        symlink(folder.path(), inside.join("up")).expect("a link");
        symlink("deep/file", inside.join("link")).expect("a link");
        symlink("deep", inside.join("short")).expect("a link");
        let root = fs::File::open(&inside).expect("a directory");
        for open in [open_beneath, open_by_steps] {
            let opens = |path: &str| {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                open(root.as_fd(), Path::new(path), flags, Mode::empty()).is_ok()
            };
            assert!(opens("deep/file") && opens("deep") && opens("."));
            for path in [
                "up/victim",
                "link",
                "short/file",
                "../victim",
                "/etc/hostname",
                "none",
            ] {
                assert!(!opens(path), "{path}");
            }
        }
    }
}
