//! Chains of jobs: removes intermediate data when no job can need it. That is when no job of the chain runs
//! and its program has finished or has been disconnected for a while. Running jobs are never ended, even if
//! their program has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use napreduce_local::chain;
use napreduce_local::chain::Removal;
use napreduce_local::clock::now;
use napreduce_local::coordinator::{Extra, KnownChain};
use napreduce_protocol::requests::{EndChain, HoldChain};
use tokio::time::Instant;

use super::refusal::Refusal;
use super::requests::{Handle, HandleLater, Reply};
use super::{ClusterCoordinator, ClusterInput};

/// Delay before a failed removal is retried.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(300);

/// The part of a chain that is not journaled.
#[derive(Debug)]
struct Watched {
    /// Open connections of its program.
    holders: usize,
    /// When the last of them was closed, or this coordinator started.
    heard: Instant,
    /// Whether its root is being removed.
    removing: bool,
    /// Its program's requests that wait for the removal.
    waiting: Vec<Reply<()>>,
    retry: Duration,
    retry_at: Instant,
}

impl Default for Watched {
    fn default() -> Watched {
        Watched {
            holders: 0,
            heard: now(),
            removing: false,
            waiting: Vec::new(),
            retry: RETRY_FIRST,
            retry_at: now(),
        }
    }
}

/// Chains whose programs are or were connected.
#[derive(Debug, Default)]
pub(super) struct ChainWatch {
    watched: BTreeMap<u128, Watched>,
}

/// Registers a program's connection to its chain.
impl Handle for HoldChain {
    fn handle(self, coordinator: &mut ClusterCoordinator) -> Result<(), Refusal> {
        let HoldChain { chain, root } = self;
        if !chain::is_root(&root, chain) {
            return Err(Refusal::wrong(format!(
                "invalid directory name {} for a chain",
                root.display()
            )));
        }
        match coordinator.local.state().chains().get(&chain) {
            Some(known) if known.root != root => {
                return Err(Refusal::wrong(format!(
                    "the chain already has the directory {}",
                    known.root.display()
                )));
            }
            Some(_) => {}
            None => {
                let known = KnownChain { root, over: false };
                coordinator.local.keep(Extra::ChainBegun { chain, known });
            }
        }
        let watched = coordinator.chains.watched.entry(chain).or_default();
        watched.holders += 1;
        Ok(())
    }
}

/// Ends a chain. The answer follows the removal of its data, unless that has to wait for another job.
impl HandleLater for EndChain {
    fn handle_later(self, coordinator: &mut ClusterCoordinator, reply: Reply<()>) {
        let chain = self.chain;
        let known = coordinator.local.state().chains().get(&chain);
        let is_known = known.is_some();
        if let Some(known) = known
            && !known.over
        {
            coordinator.local.keep(Extra::ChainOver {
                chain,
                reason: "the program has ended".to_owned(),
            });
        }
        if !is_known || coordinator.is_live(chain) {
            return coordinator.local.afterwards(move || reply.send(Ok(())));
        }
        let watched = coordinator.chains.watched.entry(chain).or_default();
        watched.waiting.push(reply);
        coordinator.remove_unused_chains();
    }
}

impl ClusterCoordinator {
    /// Unregisters a closed connection.
    pub(super) fn release_chain(&mut self, chain: u128) {
        if let Some(watched) = self.chains.watched.get_mut(&chain) {
            watched.holders = watched.holders.saturating_sub(1);
            watched.heard = now();
        }
    }

    /// Returns whether a job of the chain is running.
    fn is_live(&self, chain: u128) -> bool {
        self.local
            .state()
            .jobs()
            .values()
            .any(|job| job.accepted.plan.chain == Some(chain))
    }

    /// Removes the data of chains that no job can need.
    pub(super) fn remove_unused_chains(&mut self) {
        if self.local.state().chains().is_empty() {
            return;
        }
        let now = now();
        // A job being admitted may belong to a chain.
        let mut live: BTreeSet<u128> = self
            .local
            .state()
            .jobs()
            .values()
            .filter_map(|job| job.accepted.plan.chain)
            .collect();
        if self.local.is_claiming() {
            live.extend(self.local.state().chains().keys());
        }
        let grace = self.configuration.chain_grace;
        let mut due = Vec::new();
        for (&chain, known) in self.local.state().chains() {
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
                let reason = format!("its program was not connected for {grace:?}");
                self.local
                    .log(&format!("removing {}: {reason}", root.display()));
                self.local.keep(Extra::ChainOver { chain, reason });
            }
            let inputs = self.inputs.clone();
            let tasks = &self.configuration.world.tasks;
            let removing = tasks.blocking(move || chain::remove(&root, chain));
            tasks.spawn(async move {
                let removed = match removing.await {
                    Ok(removed) => removed.map_err(|error| error.to_string()),
                    Err(panicked) => Err(format!("internal error: {panicked}")),
                };
                // Fails after this coordinator has stopped; the next one repeats the removal.
                let _ = inputs.send(ClusterInput::ChainRemoved { chain, removed });
            });
        }
    }

    pub(super) fn on_chain_removed(&mut self, chain: u128, removed: Result<Removal, String>) {
        let known = self.local.state().chains().get(&chain);
        let root = known
            .map(|known| known.root.display().to_string())
            .unwrap_or_default();
        let watched = self.chains.watched.entry(chain).or_default();
        // If the removal failed, the program need not wait for the retry.
        let waiting = std::mem::take(&mut watched.waiting);
        match removed {
            Ok(removal) => {
                self.chains.watched.remove(&chain);
                if removal == Removal::NotOurs {
                    self.local.log(&format!(
                        "{root} was not removed: the marker of its chain is missing"
                    ));
                }
                self.local.keep(Extra::ChainSettled { chain });
            }
            Err(error) => {
                let retry = watched.retry;
                (watched.removing, watched.retry_at) = (false, now() + retry);
                watched.retry = (retry * 2).min(RETRY_MAX);
                self.local.log(&format!(
                    "cannot remove {root}: {error}; trying again in {retry:?}"
                ));
            }
        }
        self.local.afterwards(move || {
            for reply in waiting {
                reply.send(Ok(()));
            }
        });
    }
}
