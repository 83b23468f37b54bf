//! This process as others see it.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;

use napreduce_protocol::{ClaimToken, lock};
use rustix::process::{Pid, test_kill_process};

#[cfg(feature = "simulated")]
use super::Node;
use crate::process::{Life, ProcessIdentity, host};

/// The claims that this process holds.
static HELD: Mutex<BTreeSet<ClaimToken>> = Mutex::new(BTreeSet::new());

/// The process of a coordinator, worker or client: its identity in files, and the claims that it holds.
#[derive(Debug, Clone)]
pub struct Process {
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    System,
    #[cfg(feature = "simulated")]
    Node(Node),
}

impl Process {
    pub(super) fn system() -> Process {
        Process {
            source: Source::System,
        }
    }

    #[cfg(feature = "simulated")]
    pub(super) fn of_node(node: Node) -> Process {
        Process {
            source: Source::Node(node),
        }
    }

    /// Returns its identity.
    ///
    /// # Errors
    /// Fails if `/proc` cannot be read.
    pub fn identity(&self) -> io::Result<ProcessIdentity> {
        match &self.source {
            Source::System => ProcessIdentity::this(),
            #[cfg(feature = "simulated")]
            Source::Node(node) => Ok(node.identity()),
        }
    }

    /// Returns the name of its host.
    pub fn host(&self) -> String {
        match &self.source {
            Source::System => host(),
            #[cfg(feature = "simulated")]
            Source::Node(node) => node.identity().host().to_owned(),
        }
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        match &self.source {
            Source::System => std::process::id(),
            #[cfg(feature = "simulated")]
            Source::Node(node) => node.identity().id(),
        }
    }

    /// Returns whether a process of this host has that id.
    pub fn is_running(&self, id: u32) -> bool {
        match &self.source {
            Source::System => {
                let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) else {
                    return false;
                };
                test_kill_process(pid).is_ok()
            }
            #[cfg(feature = "simulated")]
            Source::Node(node) => node.identity().id() == id,
        }
    }

    /// Returns whether another process, or this one, is alive.
    ///
    /// # Errors
    /// Fails if `/proc` cannot be read.
    pub fn life_of(&self, other: &ProcessIdentity) -> io::Result<Life> {
        match &self.source {
            Source::System => other.life(),
            #[cfg(feature = "simulated")]
            Source::Node(node) => Ok(node.life_of(other)),
        }
    }

    /// Returns whether an identity is that of this process.
    pub(crate) fn is(&self, other: &ProcessIdentity) -> bool {
        match &self.source {
            Source::System => other.is_this(),
            #[cfg(feature = "simulated")]
            Source::Node(node) => node.identity() == *other,
        }
    }

    /// Records that this process holds a claim.
    pub(crate) fn hold(&self, token: ClaimToken) {
        self.with_held(|held| held.insert(token));
    }

    /// Records that this process no longer holds a claim.
    pub(crate) fn release(&self, token: ClaimToken) {
        self.with_held(|held| held.remove(&token));
    }

    /// Returns whether this process holds a claim.
    pub(crate) fn holds(&self, token: ClaimToken) -> bool {
        self.with_held(|held| held.contains(&token))
    }

    fn with_held(&self, act: impl FnOnce(&mut BTreeSet<ClaimToken>) -> bool) -> bool {
        match &self.source {
            Source::System => act(&mut lock(&HELD)),
            #[cfg(feature = "simulated")]
            Source::Node(node) => node.with_held(act),
        }
    }
}
