//! Checks, before the first attempt, that the kernel has the features required to run attempts.

use std::io;

use rustix::io::Errno;
use rustix::process::{PidfdFlags, WaitId, WaitIdOptions, getpid, pidfd_open, waitid};

/// The first version with all required features.
const OLDEST: &str = "5.4";

/// Checks that attempts can be watched; the error names the missing feature.
pub fn check_kernel() -> io::Result<()> {
    let opened = pidfd_open(getpid(), PidfdFlags::empty());
    // A process is not its own child, so the expected error is ECHILD: the call is supported.
    let waited = opened.as_ref().ok().map(|own| {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        waitid(WaitId::PidFd(std::os::fd::AsFd::as_fd(own)), options).map(drop)
    });
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    judge(opened.map(drop), waited.unwrap_or(Ok(())), &release).map_err(io::Error::other)
}

fn judge(
    opened: Result<(), Errno>,
    waited: Result<(), Errno>,
    release: &str,
) -> Result<(), String> {
    let missing = |what: &str| {
        Err(format!(
            "Linux {release} does not support {what}; napreduce needs Linux {OLDEST} or later"
        ))
    };
    match (opened, waited) {
        (Err(Errno::NOSYS), _) => missing("pidfd_open"),
        (Err(Errno::PERM), _) => {
            Err("pidfd_open is forbidden, probably by a container's seccomp profile; allow it there, or use a newer \
                 container runtime"
                .to_owned())
        }
        (Err(error), _) => Err(format!("pidfd_open failed: {error}")),
        (Ok(()), Err(Errno::INVAL)) => missing("waitid for a pidfd"),
        // Any other result means that the call is supported.
        (Ok(()), _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_without_required_call_is_named() {
        let judged = |opened, waited| judge(opened, waited, "4.19.0-generic");
        let older = |what: &str| {
            Err(format!(
                "Linux 4.19.0-generic does not support {what}; napreduce needs Linux 5.4 or later"
            ))
        };
        assert_eq!(judged(Err(Errno::NOSYS), Ok(())), older("pidfd_open"));
        assert_eq!(
            judged(Ok(()), Err(Errno::INVAL)),
            older("waitid for a pidfd")
        );
        assert_eq!(judged(Ok(()), Err(Errno::CHILD)), Ok(()));
        assert!(
            judged(Err(Errno::PERM), Ok(()))
                .expect_err("forbidden")
                .contains("container")
        );
        assert_eq!(
            judged(Err(Errno::MFILE), Ok(())),
            Err(format!("pidfd_open failed: {}", Errno::MFILE))
        );
    }

    #[test]
    fn this_kernel_passes_the_check() {
        check_kernel().expect("these tests need it as well");
    }
}
