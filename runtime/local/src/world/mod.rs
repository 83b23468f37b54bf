//! What coordinators, workers and clients get from outside: wall-clock time, random numbers, tasks, their identity and
//! connections.
//!
//! A production process uses [`World::real`]. A simulation gives each of its machines a world of its own, so that a
//! whole cluster runs in one thread and is repeatable. Monotonic time is tokio's, see [`clock::now`](crate::clock::now):
//! a simulation pauses it for all machines at once.

mod clock;
pub mod disk;
mod net;
#[cfg(feature = "simulated")]
mod numbers;
mod observation;
mod process;
mod random;
#[cfg(feature = "simulated")]
mod sim_net;
#[cfg(feature = "simulated")]
mod simulated;
mod tasks;

use std::sync::Arc;

pub use clock::Clock;
pub use net::{Acceptor, Net, NetFuture, Receiving, Route, Sending, Stream, Tcp};
#[cfg(feature = "simulated")]
pub use numbers::SplitMix;
#[cfg(feature = "simulated")]
pub use observation::{Fact, Observer, Observing, note};
pub use observation::{Situation, reached};
pub use process::Process;
pub use random::Random;
#[cfg(feature = "simulated")]
pub use sim_net::{LinkSettings, NetFault, SimNet};
#[cfg(feature = "simulated")]
pub use simulated::Node;
pub use tasks::Tasks;

/// The surroundings of a coordinator, worker or client.
#[derive(Debug, Clone)]
pub struct World {
    /// The wall clock.
    pub clock: Clock,
    /// Random numbers.
    pub random: Random,
    /// Spawns tasks and blocking work.
    pub tasks: Tasks,
    /// Its identity, and the claims that it holds.
    pub process: Process,
    /// Connections to other processes.
    pub net: Arc<dyn Net>,
    /// The files of output directories, if they may lose what was not synced.
    #[cfg(feature = "simulated")]
    pub outputs: Option<disk::UnsyncedFiles>,
}

impl World {
    /// Returns the surroundings of this process.
    pub fn real() -> World {
        World {
            clock: Clock::system(),
            random: Random::system(),
            tasks: Tasks::tokio(),
            process: Process::system(),
            net: Arc::new(Tcp),
            #[cfg(feature = "simulated")]
            outputs: None,
        }
    }
}

#[cfg(feature = "simulated")]
impl Node {
    /// Returns the surroundings of this process, without connections to others; a [`SimNet`] has those.
    pub fn world(&self) -> World {
        World {
            clock: Clock::of_node(self.clone()),
            random: Random::of_node(self.clone()),
            tasks: Tasks::of_node(self.clone()),
            process: Process::of_node(self.clone()),
            net: Arc::new(sim_net::Unconnected),
            outputs: None,
        }
    }
}
