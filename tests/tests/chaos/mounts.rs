//! Worker disks that fill up and output file systems that disappear. They are mounted in a mount namespace
//! that ends with the last process of the test.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use napreduce_tests::skipped;

/// Set in the process that has the namespace: `mounted`, or why there is no namespace.
const VARIABLE: &str = "NAPREDUCE_CHAOS_MOUNTS";
/// Enough for the programs of all jobs and the files of their tasks.
const DISK_SIZE: &str = "512m";

/// Enters a new mount namespace, if that is permitted.
pub fn enter() {
    if std::env::var_os(VARIABLE).is_some() {
        return;
    }
    let root = rustix::process::geteuid().is_root();
    let flags: &[&str] = if root {
        &["--mount"]
    } else {
        &["--user", "--map-root-user", "--mount"]
    };
    let tried = Command::new("unshare")
        .args(flags)
        .arg("true")
        .stdin(Stdio::null())
        .output();
    let why = match tried {
        Ok(tried) if tried.status.success() => {
            let mut again = Command::new("unshare");
            again.args(flags).args(["--propagation", "private"]);
            again
                .arg(std::env::current_exe().expect("the path of this test"))
                .args(std::env::args_os().skip(1));
            again.env(VARIABLE, "mounted").exec().to_string()
        }
        Ok(tried) => String::from_utf8_lossy(&tried.stderr).trim().to_owned(),
        Err(error) => format!("unshare: {error}"),
    };
    skipped(
        "mounts",
        &format!("full disks and unmounted outputs need a mount namespace: {why}"),
    );
}

/// Returns whether file systems can be mounted.
pub fn can_mount() -> bool {
    std::env::var(VARIABLE).is_ok_and(|value| value == "mounted")
}

/// A small file system.
pub struct Disk(PathBuf);

impl Disk {
    /// Mounts the disk at a directory, which is created.
    pub fn mount(at: &Path) -> Disk {
        fs::create_dir_all(at).expect("a directory");
        let size = format!("size={DISK_SIZE},mode=700");
        mount(
            Command::new("mount")
                .args(["-t", "tmpfs", "-o", &size, "disk"])
                .arg(at),
        )
        .expect("a disk");
        Disk(at.to_owned())
    }

    /// Fills the disk.
    pub fn fill(&self) -> Result<(), String> {
        let failed =
            |error: rustix::io::Errno| format!("cannot fill {}: {error}", self.0.display());
        let ballast = fs::File::create(self.ballast()).map_err(|error| error.to_string())?;
        let mut length = 0;
        // Other processes also write, so that less may be left than was reported.
        for _ in 0..100 {
            let free = rustix::fs::statvfs(&self.0).map_err(failed)?;
            let bytes = free.f_bavail * free.f_frsize;
            if bytes == 0 {
                return Ok(());
            }
            let flags = rustix::fs::FallocateFlags::empty();
            match rustix::fs::fallocate(&ballast, flags, length, bytes) {
                Ok(()) => length += bytes,
                Err(rustix::io::Errno::NOSPC) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    /// Frees the disk.
    pub fn free(&self) {
        // Fails if the disk is already free.
        let _ = fs::remove_file(self.ballast());
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

/// A directory that shows another one while that one is mounted.
pub struct Shared {
    /// The path at which it is visible.
    at: PathBuf,
    /// The mounted directory.
    content: PathBuf,
}

impl Shared {
    pub fn mount(at: PathBuf, content: PathBuf) -> Shared {
        for directory in [&at, &content] {
            fs::create_dir_all(directory).expect("a directory");
        }
        let shared = Shared { at, content };
        shared.come_back();
        shared
    }

    /// Hides the outputs: an empty directory takes their place.
    pub fn go_away(&self) {
        unmount(&self.at);
    }

    pub fn come_back(&self) {
        mount(
            Command::new("mount")
                .arg("--bind")
                .arg(&self.content)
                .arg(&self.at),
        )
        .expect("a mount");
    }

    /// Returns the entries created in its place meanwhile.
    pub fn strays(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.at).expect("a directory");
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        unmount(&self.at);
    }
}

fn mount(command: &mut Command) -> Result<(), String> {
    let ended = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if ended.status.success() {
        Ok(())
    } else {
        Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&ended.stderr).trim()
        ))
    }
}

/// Unmounts lazily: open files stay usable.
fn unmount(at: &Path) {
    // Fails if it is not mounted.
    let _ = Command::new("umount")
        .arg("--lazy")
        .arg(at)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
}
