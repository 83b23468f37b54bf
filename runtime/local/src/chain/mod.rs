//! Several jobs of one program, one on the output of the other: where what passes between them lies, and who
//! removes it.
//!
//! Owns the side of the program. A program that runs its jobs itself removes the directory at its end; on a
//! cluster the coordinator does, when the program is done or gone and no job of the chain runs any more
//! (`coordinator`). Does not own the conversation with the coordinator (`client`).

mod root;

use std::fmt::Debug;
use std::fs::File;
use std::path::{Path, PathBuf};

use napreduce_protocol::JobError;
use napreduce_task::ProcessIdentity;
use root::{Owner, beside, make, remove_remains};
pub use root::{Removal, is_root, remove};

use crate::random::random_u128;

/// The jobs of one run of a program.
#[derive(Debug)]
pub struct Chain {
    token: u128,
    output: PathBuf,
    root: PathBuf,
    held: Held,
}

/// Tells a coordinator, for as long as a program runs, that more jobs of its chain may come. Dropped without
/// `end`, the chain is left to the coordinator.
pub trait ChainKeeper: Debug {
    /// No job follows any more. Waits a while for the coordinator to know. Blocking.
    ///
    /// # Errors
    /// Why the coordinator was not told, for people.
    fn end(self: Box<Self>) -> Result<(), String>;
}

/// Has a coordinator know of a chain, by its token and directory.
pub type KeepChain<'a> = &'a dyn Fn(u128, PathBuf) -> Result<Box<dyn ChainKeeper>, JobError>;

#[derive(Debug)]
enum Held {
    /// Nothing was made.
    Not,
    Here(File),
    ByCluster(Box<dyn ChainKeeper>),
}

impl Chain {
    /// A chain whose last job writes to `output`; makes nothing.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn beside(output: &Path) -> Result<Chain, JobError> {
        let token = random_u128().map_err(|error| JobError::io("draw a random number", error))?;
        Ok(Chain { token, output: output.to_owned(), root: beside(output, token), held: Held::Not })
    }

    /// The directory for what passes from one job to the next; beside the output, under a name like no other.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What jobs of a cluster are known by as this chain's: for [`JobPlan::chain`](napreduce_protocol::JobPlan::chain).
    pub fn token(&self) -> Option<u128> {
        matches!(self.held, Held::ByCluster(_)).then_some(self.token)
    }

    /// Makes the directory, once, when the first job needs it; on a cluster, its coordinator knows of it from
    /// before then on. Removes what killed runs have left beside the same output; a line for each. Blocking.
    ///
    /// # Errors
    /// The directory cannot be made, or the coordinator not be told.
    pub fn begin(&mut self, on_cluster: Option<KeepChain<'_>>) -> Result<Vec<String>, JobError> {
        if !matches!(self.held, Held::Not) {
            return Ok(Vec::new());
        }
        let making = |error| JobError::io(format!("create {}", self.root.display()), error);
        let lines = remove_remains(&self.output);
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

    /// The program runs no further job: removes the directory, or has the coordinator do so. Blocking.
    ///
    /// # Errors
    /// What is left, why, and what becomes of it, for people.
    pub fn end(&mut self) -> Result<(), String> {
        let shown = self.root.display();
        match std::mem::replace(&mut self.held, Held::Not) {
            Held::Not => Ok(()),
            Held::ByCluster(keeper) => keeper.end().map_err(|error| {
                format!(
                    "cannot tell the coordinator that no further job comes ({error}); it removes {shown} by itself when \
                     it has not heard of this program for a while"
                )
            }),
            Held::Here(_lock) => match remove(&self.root, self.token) {
                Ok(Removal::Gone) => Ok(()),
                Ok(Removal::NotOurs) => Err(format!("{shown} was left alone: its marker is not there any more")),
                Err(error) => Err(format!("cannot remove {shown}: {error}; remove it by hand")),
            },
        }
    }
}
