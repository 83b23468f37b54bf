//! Who holds a claim, and whether he lives.
//!
//! Owns how a process is known again: by host, boot, process number and start time. Does not own the claim's lease, by which
//! hosts judge each other (`standing`).

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::record::ClaimToken;

/// A process that holds a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    host: String,
    /// Of this start of the host's kernel.
    boot: String,
    process: u32,
    /// In ticks since the boot; a number that is given again has another one.
    started: u64,
    /// Process numbers mean something only within it.
    namespace: u64,
}

/// What can be said of a holder from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// Running, or stopped.
    Alive,
    Dead,
    /// On another host, or where its processes cannot be seen.
    Unknown,
}

/// Claims that this process holds at this moment.
static HELD: Mutex<BTreeSet<ClaimToken>> = Mutex::new(BTreeSet::new());

/// Says that this process holds a claim, as long as it lives.
#[derive(Debug)]
pub(super) struct Holding(ClaimToken);

impl Holding {
    pub(super) fn new(token: ClaimToken) -> Holding {
        HELD.lock().unwrap_or_else(PoisonError::into_inner).insert(token);
        Holding(token)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        HELD.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

impl Holder {
    /// This process.
    pub(super) fn this() -> io::Result<Holder> {
        let process = std::process::id();
        Ok(Holder {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            boot: boot()?,
            process,
            started: started(process)?.unwrap_or(0),
            namespace: namespace()?,
        })
    }

    /// Whether the holder of the claim `token` lives.
    pub(super) fn life(&self, token: ClaimToken) -> io::Result<Life> {
        if self.boot != boot()? || self.namespace != namespace()? {
            return Ok(Life::Unknown);
        }
        let lives = if self.process == std::process::id() {
            HELD.lock().unwrap_or_else(PoisonError::into_inner).contains(&token)
        } else {
            started(self.process)? == Some(self.started)
        };
        Ok(if lives { Life::Alive } else { Life::Dead })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.process, self.host)
    }
}

fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

fn namespace() -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(fs::metadata("/proc/self/ns/pid")?.ino())
}

/// When a process was started; `None` when there is none of that number, or only what waits to be reaped.
fn started(process: u32) -> io::Result<Option<u64>> {
    let stat = match fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => return Ok(None),
        stat => stat?,
    };
    // The name is in parentheses, and may itself hold some.
    let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    if matches!(fields.next(), Some("Z" | "X" | "x")) {
        return Ok(None);
    }
    fields.nth(18).and_then(|ticks| ticks.parse().ok()).map(Some).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{process}/stat has another form"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_and_the_start_of_a_process_are_what_it_is_known_by() {
        let token = ClaimToken::from(7);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is there");
        let own = Holder::this().expect("a holder");
        let started_at = started(child.id()).expect("a start").expect("it runs");
        let holder = Holder { process: child.id(), started: started_at, ..own.clone() };
        assert_eq!(holder.life(token).expect("a life"), Life::Alive);
        let later = Holder { started: started_at + 1, ..holder.clone() };
        assert_eq!(later.life(token).expect("a life"), Life::Dead, "another process of that number");
        let elsewhere = Holder { boot: "another".to_owned(), ..holder.clone() };
        assert_eq!(elsewhere.life(token).expect("a life"), Life::Unknown);
        child.kill().and_then(|()| child.wait()).expect("its own child");
        assert_eq!(holder.life(token).expect("a life"), Life::Dead);

        assert_eq!(own.life(token).expect("a life"), Life::Dead, "this process holds no such claim");
        let held = Holding::new(token);
        assert_eq!(own.life(token).expect("a life"), Life::Alive);
        drop(held);
        assert_eq!(own.life(token).expect("a life"), Life::Dead);
    }
}
