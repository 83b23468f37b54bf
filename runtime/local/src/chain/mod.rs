//! Chains of jobs of one program, each reading the output of the previous one: the location of the
//! intermediate data and its removal.
//!
//! A program that runs its jobs itself removes the directory at its end. On a cluster the coordinator removes
//! it when the program has ended and no job of the chain runs.

mod root;

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use napreduce_protocol::JobError;
use root::{Owner, make, remove_abandoned, root_path};
pub use root::{Removal, is_root, remove};

use crate::locked_file::LockedFile;
use crate::process::ProcessIdentity;
use crate::world::World;

/// The jobs of one run of a program.
#[derive(Debug)]
pub struct Chain {
    token: u128,
    output: PathBuf,
    root: PathBuf,
    held: Held,
}

/// Keeps a chain open at a coordinator while the program runs. If it is dropped without `end`, the
/// coordinator ends the chain.
pub trait ChainKeeper: Debug + Send {
    /// Ends the chain: no job follows. Waits for some time for the coordinator's acknowledgement. Blocking.
    ///
    /// # Errors
    /// Returns the reason for people if the coordinator could not be notified.
    fn end(self: Box<Self>) -> Result<(), String>;
}

/// Registers a chain at a coordinator by its token and directory.
pub type KeepChain<'a> = &'a dyn Fn(u128, PathBuf) -> Result<Box<dyn ChainKeeper>, JobError>;

#[derive(Debug)]
enum Held {
    /// Not created yet.
    Not,
    Here(LockedFile),
    ByCluster(Box<dyn ChainKeeper>),
}

impl Chain {
    /// Prepares a chain whose last job writes to `output`; creates nothing.
    ///
    /// # Errors
    /// Fails if the system has no random numbers.
    pub fn next_to(output: &Path) -> Result<Chain, JobError> {
        let token = World::real()
            .random
            .token()
            .map_err(|error| JobError::io("draw a random number", error))?;
        Ok(Chain {
            token,
            output: output.to_owned(),
            root: root_path(output, token),
            held: Held::Not,
        })
    }

    /// Returns the directory for intermediate data, next to the output under a unique name.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the token that marks jobs of a cluster as part of this chain: for
    /// [`JobPlan::chain`](napreduce_protocol::JobPlan::chain).
    pub fn token(&self) -> Option<u128> {
        matches!(self.held, Held::ByCluster(_)).then_some(self.token)
    }

    /// Creates the directory for the first job that needs it, on a cluster after registering it with the
    /// coordinator. Also removes directories of killed runs next to the same output; returns a line for each.
    /// Blocking.
    ///
    /// # Errors
    /// Fails if the directory cannot be created or registered.
    pub fn begin(&mut self, on_cluster: Option<KeepChain<'_>>) -> Result<Vec<String>, JobError> {
        if !matches!(self.held, Held::Not) {
            return Ok(Vec::new());
        }
        let making = |error| JobError::io(format!("create {}", self.root.display()), error);
        let lines = remove_abandoned(&self.output);
        self.held = match on_cluster {
            Some(keep) => {
                let absolute = std::path::absolute(&self.root).map_err(making)?;
                let keeper = keep(self.token, absolute)?;
                make(&self.root, self.token, Owner::Cluster).map_err(making)?;
                Held::ByCluster(keeper)
            }
            None => {
                let owner = ProcessIdentity::this().map_err(making)?;
                Held::Here(make(&self.root, self.token, Owner::Program(owner)).map_err(making)?)
            }
        };
        Ok(lines)
    }

    /// Ends the chain after the last job: removes the directory, or lets the coordinator do so. Blocking.
    ///
    /// # Errors
    /// Reports for people what remains, why, and who will remove it.
    pub fn end(&mut self) -> Result<(), String> {
        let shown = self.root.display();
        match std::mem::replace(&mut self.held, Held::Not) {
            Held::Not => Ok(()),
            Held::ByCluster(keeper) => keeper.end().map_err(|error| {
                format!(
                    "cannot report the end of the chain to the coordinator ({error}); it removes {shown} itself when it has \
                     not heard from this program for a while"
                )
            }),
            Held::Here(_lock) => match remove(&self.root, self.token) {
                Ok(Removal::Gone) => Ok(()),
                Ok(Removal::NotOurs) => Err(format!("{shown} was not removed: its marker is missing")),
                Err(error) => Err(format!("cannot remove {shown}: {error}; remove it by hand")),
            },
        }
    }
}
