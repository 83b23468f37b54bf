//! Chains of jobs: what passes from one job to the next is removed when nobody can want it any more.
//!
//! Owns when that is: the program has said that it is done, or was not heard of for a while, and no job of
//! the chain runs. Jobs that run are left alone, also when their program is gone. Does not own the directory
//! and its removal (`chain`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use napreduce_local::chain;
use napreduce_local::chain::Removal;
use napreduce_local::coordinator::{Extra, KnownChain};
use napreduce_protocol::FromCoordinator;

use super::requests::{Refusal, Reply};
use super::{ClusterCoordinator, ClusterInput};

/// Between two tries to remove a directory that could not be removed.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(300);

/// What of a chain needs no journal.
#[derive(Debug)]
struct Watched {
    /// Connections of its program.
    holders: usize,
    /// When the last of them was closed, or this coordinator was started.
    heard: Instant,
    /// Its root is being removed.
    removing: bool,
    /// Its program, which waits for that.
    waiting: Vec<Reply>,
    retry: Duration,
    retry_at: Instant,
}

impl Default for Watched {
    fn default() -> Watched {
        Watched {
            holders: 0,
            heard: Instant::now(),
            removing: false,
            waiting: Vec::new(),
            retry: RETRY_FIRST,
            retry_at: Instant::now(),
        }
    }
}

/// The programs of chains, as far as they are connected.
#[derive(Debug, Default)]
pub(super) struct ChainWatch {
    watched: BTreeMap<u128, Watched>,
}

impl ClusterCoordinator {
    /// A program is there whose jobs are a chain.
    pub(super) fn hold_chain(&mut self, chain: u128, root: PathBuf, reply: Reply) {
        let held = match self.local.state.chains.get(&chain) {
            _ if !chain::is_root(&root, chain) => {
                Err(Refusal::wrong(format!("{} is not what a chain's directory is called", root.display())))
            }
            Some(known) if known.root != root => {
                Err(Refusal::wrong(format!("this chain's directory is {}", known.root.display())))
            }
            Some(_) => Ok(()),
            None => {
                let known = KnownChain { root, over: false };
                self.local.keep(Extra::ChainBegun { chain, known });
                Ok(())
            }
        };
        if held.is_ok() {
            self.chains.watched.entry(chain).or_default().holders += 1;
        }
        // Whoever is gone does not want to know.
        self.local.afterwards(move || drop(reply.send(held.map(|()| FromCoordinator::Done))));
    }

    /// A connection of its program is closed.
    pub(super) fn release_chain(&mut self, chain: u128) {
        if let Some(watched) = self.chains.watched.get_mut(&chain) {
            watched.holders = watched.holders.saturating_sub(1);
            watched.heard = Instant::now();
        }
    }

    /// Its program has said that no job follows. It is answered when what it left is gone, unless that takes
    /// until the end of another job.
    pub(super) fn end_chain(&mut self, chain: u128, reply: Reply) {
        if self.local.state.chains.get(&chain).is_some_and(|known| !known.over) {
            self.local.keep(Extra::ChainOver { chain, reason: "the program is done".to_owned() });
        }
        if !self.local.state.chains.contains_key(&chain) || self.is_live(chain) {
            // Whoever is gone does not want to know.
            return self.local.afterwards(move || drop(reply.send(Ok(FromCoordinator::Done))));
        }
        self.chains.watched.entry(chain).or_default().waiting.push(reply);
        self.look_after_chains();
    }

    /// Whether a job of the chain runs.
    fn is_live(&self, chain: u128) -> bool {
        self.local.state.jobs.values().any(|job| job.accepted.plan.chain == Some(chain))
    }

    /// Removes what no job can want any more.
    pub(super) fn look_after_chains(&mut self) {
        if self.local.state.chains.is_empty() {
            return;
        }
        let now = Instant::now();
        // A job on its way in may be one of them.
        let mut live: BTreeSet<u128> =
            self.local.state.jobs.values().filter_map(|job| job.accepted.plan.chain).collect();
        if !self.local.claiming.is_empty() {
            live.extend(self.local.state.chains.keys());
        }
        let grace = self.configuration.chain_grace;
        let mut due = Vec::new();
        for (&chain, known) in &self.local.state.chains {
            let watched = self.chains.watched.entry(chain).or_default();
            let is_alone = watched.holders == 0 && watched.heard + grace <= now;
            let is_due = !watched.removing && watched.retry_at <= now && (known.over || is_alone);
            if is_due && !live.contains(&chain) {
                watched.removing = true;
                due.push((chain, known.clone()));
            }
        }
        for (chain, KnownChain { root, over }) in due {
            if !over {
                let reason = format!("its program was not heard of for {grace:?}");
                self.local.say(&format!("removing {}: {reason}", root.display()));
                self.local.keep(Extra::ChainOver { chain, reason });
            }
            let inputs = self.inputs.clone();
            tokio::task::spawn_blocking(move || {
                let removed = chain::remove(&root, chain).map_err(|error| error.to_string());
                // A coordinator that has ended does it again when it is back.
                let _ = inputs.send(ClusterInput::ChainRemoved { chain, removed });
            });
        }
    }

    pub(super) fn on_chain_removed(&mut self, chain: u128, removed: Result<Removal, String>) {
        let known = self.local.state.chains.get(&chain);
        let root = known.map(|known| known.root.display().to_string()).unwrap_or_default();
        let watched = self.chains.watched.entry(chain).or_default();
        // When it could not be removed, the program need not wait for the next try.
        let waiting = std::mem::take(&mut watched.waiting);
        match removed {
            Ok(removal) => {
                self.chains.watched.remove(&chain);
                if removal == Removal::NotOurs {
                    self.local.say(&format!("{root} was left alone: the marker of its chain is not in it"));
                }
                self.local.keep(Extra::ChainSettled { chain });
            }
            Err(error) => {
                let retry = watched.retry;
                (watched.removing, watched.retry_at) = (false, Instant::now() + retry);
                watched.retry = (retry * 2).min(RETRY_MAX);
                self.local.say(&format!("cannot remove {root}: {error}; trying again in {retry:?}"));
            }
        }
        self.local.afterwards(move || {
            waiting.into_iter().for_each(|reply| drop(reply.send(Ok(FromCoordinator::Done))))
        });
    }
}
