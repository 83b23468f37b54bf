//! Which process it is, for a file that outlives it.
//!
//! Owns how a process is known again: by host, start of the kernel, number and start time. Does not own what is done when
//! it is gone.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

/// One process of one start of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessIdentity {
    host: String,
    /// Of this start of the host's kernel.
    boot: String,
    process: u32,
    /// In ticks since the boot: a number that is given again has another one.
    started: u64,
    /// Process numbers mean something only within it.
    namespace: u64,
}

impl ProcessIdentity {
    /// This process.
    pub(crate) fn this() -> io::Result<ProcessIdentity> {
        let process = std::process::id();
        Ok(ProcessIdentity {
            host: host(),
            boot: boot()?,
            process,
            started: started(process)?.unwrap_or(0),
            namespace: namespace()?,
        })
    }

    /// Whether it is certain, as far as can be seen from here, that it is gone: a process of another host never is.
    pub(crate) fn is_gone(&self) -> io::Result<bool> {
        if self.host != host() {
            return Ok(false);
        }
        if self.boot != boot()? {
            return Ok(true);
        }
        Ok(self.namespace == namespace()? && started(self.process)? != Some(self.started))
    }
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

fn namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/pid")?.ino())
}

/// When a process was started; `None` when there is none of that number, or only what waits to be reaped.
fn started(process: u32) -> io::Result<Option<u64>> {
    let path = format!("/proc/{process}/stat");
    let stat = match fs::read_to_string(&path) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => return Ok(None),
        stat => stat?,
    };
    // The name is in parentheses, and may itself hold some.
    let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    if matches!(fields.next(), Some("Z" | "X" | "x")) {
        return Ok(None);
    }
    let ticks = fields.nth(18).and_then(|ticks| ticks.parse().ok());
    ticks
        .map(Some)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{path} has another form")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_more_than_its_number() {
        let own = ProcessIdentity::this().expect("an identity");
        assert!(!own.is_gone().expect("seen"));
        let gone = |other: ProcessIdentity| other.is_gone().expect("seen");
        assert!(gone(ProcessIdentity { started: own.started + 1, ..own.clone() }), "a number given again");
        assert!(gone(ProcessIdentity { boot: "another".to_owned(), ..own.clone() }), "before a reboot");
        assert!(!gone(ProcessIdentity { host: "another".to_owned(), started: 1, ..own.clone() }));
        assert!(!gone(ProcessIdentity { namespace: 1, started: 1, ..own }), "unseen from here");
    }
}
