//! The identity of a process in a file that outlives it: host, boot, process id and start time.

use std::os::unix::fs::MetadataExt;
use std::{fmt, fs, io};

use serde::{Deserialize, Serialize};

/// The state of a process as seen by this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Running, or stopped.
    Alive,
    Dead,
    /// On another host, or in an invisible process namespace.
    Unknown,
}

/// A process, identified across reboots and reuse of process ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    host: String,
    /// The boot id of the kernel.
    boot: String,
    process: u32,
    /// In ticks since the boot; differs for a reused process id.
    started: u64,
    /// Process ids are valid within it.
    namespace: u64,
}

impl ProcessIdentity {
    /// Returns the identity of this process.
    pub fn this() -> io::Result<ProcessIdentity> {
        let process = std::process::id();
        Ok(ProcessIdentity {
            host: host(),
            boot: boot()?,
            process,
            started: started(process)?.unwrap_or(0),
            namespace: namespace()?,
        })
    }

    /// Returns the identity of a process of a simulation.
    #[cfg(feature = "simulated")]
    pub(crate) fn simulated(host: &str, number: u64) -> ProcessIdentity {
        ProcessIdentity {
            host: host.to_owned(),
            boot: format!("boot of {host}"),
            process: number as u32,
            started: number,
            namespace: 0,
        }
    }

    /// Returns whether both ran on one host since its boot.
    #[cfg(feature = "simulated")]
    pub(crate) fn is_on_host_of(&self, other: &ProcessIdentity) -> bool {
        (&self.host, &self.boot) == (&other.host, &other.boot)
    }

    /// Returns the name of its host. Many hosts may share it.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns its id, unique on its host while it lives.
    pub fn id(&self) -> u32 {
        self.process
    }

    /// Returns whether it is this process.
    pub fn is_this(&self) -> bool {
        self.process == std::process::id()
    }

    /// Returns whether it is alive. Host names prove nothing, since many hosts share a name.
    pub fn life(&self) -> io::Result<Life> {
        if self.boot != boot()? || self.namespace != namespace()? {
            return Ok(Life::Unknown);
        }
        if started(self.process)? == Some(self.started) {
            Ok(Life::Alive)
        } else {
            Ok(Life::Dead)
        }
    }

    /// Returns whether it has ended, also by a reboot of a host of this name. The latter is sufficient if a
    /// lock guards its files.
    pub fn is_gone(&self) -> io::Result<bool> {
        let restarted = self.host == host() && self.boot != boot()?;
        Ok(restarted || self.life()? == Life::Dead)
    }
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.process, self.host)
    }
}

pub(crate) fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}

fn namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/pid")?.ino())
}

/// Returns when a process was started; `None` if it does not exist or is a zombie.
fn started(process: u32) -> io::Result<Option<u64>> {
    let path = format!("/proc/{process}/stat");
    let stat = match fs::read_to_string(&path) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => {
            return Ok(None);
        }
        stat => stat?,
    };
    // The name in parentheses may contain parentheses itself.
    let mut fields = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_ascii_whitespace();
    if matches!(fields.next(), Some("Z" | "X" | "x")) {
        return Ok(None);
    }
    let ticks = fields.nth(18).and_then(|ticks| ticks.parse().ok());
    ticks.map(Some).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{path}: unknown format"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reused_process_id_is_another_process() {
        let own = ProcessIdentity::this().expect("an identity");
        let seen =
            |other: ProcessIdentity| (other.life().expect("seen"), other.is_gone().expect("seen"));
        assert_eq!(seen(own.clone()), (Life::Alive, false));
        let other = ProcessIdentity {
            started: own.started + 1,
            ..own.clone()
        };
        assert_eq!(seen(other), (Life::Dead, true), "a number given again");
        let other = ProcessIdentity {
            boot: "another".to_owned(),
            ..own.clone()
        };
        assert_eq!(
            seen(other.clone()),
            (Life::Unknown, true),
            "before a restart, or a host of the same name"
        );
        assert_eq!(
            seen(ProcessIdentity {
                host: "another".to_owned(),
                ..other
            }),
            (Life::Unknown, false)
        );
        let other = ProcessIdentity {
            namespace: 1,
            started: 1,
            ..own
        };
        assert_eq!(seen(other), (Life::Unknown, false), "unseen from here");
    }

    #[test]
    fn process_is_alive_until_it_is_reaped() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep is there");
        let started = started(child.id()).expect("a start").expect("it runs");
        let own = ProcessIdentity::this().expect("an identity");
        let other = ProcessIdentity {
            process: child.id(),
            started,
            ..own
        };
        assert_eq!(other.life().expect("seen"), Life::Alive);
        child
            .kill()
            .and_then(|()| child.wait())
            .expect("its own child");
        assert_eq!(other.life().expect("seen"), Life::Dead);
    }
}
