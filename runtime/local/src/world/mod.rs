//! What coordinators, workers and clients get from outside: wall-clock time, random numbers, tasks and their identity.
//!
//! A production process uses [`World::real`]. A simulation gives each of its machines a world of its own, so that a
//! whole cluster runs in one thread and is repeatable. Monotonic time is tokio's, see [`clock::now`](crate::clock::now):
//! a simulation pauses it for all machines at once.

mod clock;
mod process;
mod random;
#[cfg(feature = "simulated")]
mod simulated;
mod tasks;

pub use clock::Clock;
pub use process::Process;
pub use random::Random;
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
}

impl World {
    /// Returns the surroundings of this process.
    pub fn real() -> World {
        World {
            clock: Clock::system(),
            random: Random::system(),
            tasks: Tasks::tokio(),
            process: Process::system(),
        }
    }
}

#[cfg(feature = "simulated")]
impl Node {
    /// Returns the surroundings of this process.
    pub fn world(&self) -> World {
        World {
            clock: Clock::of_node(self.clone()),
            random: Random::of_node(self.clone()),
            tasks: Tasks::of_node(self.clone()),
            process: Process::of_node(self.clone()),
        }
    }
}
