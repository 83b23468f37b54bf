//! The faults of a run: of the network between hosts, and of the hosts.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use napreduce_local::world::{NetFault, SimNet, SplitMix};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep, sleep_until};

use crate::chance::Chance;
use crate::facts::Facts;
use crate::host::HostFault;
use crate::log::Log;

/// The most by which a wall clock jumps, in microseconds: two hours.
const JUMP_MICROS: u64 = 2 * 3600 * 1_000_000;

/// What goes wrong beside the tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    Nothing,
    Network,
    Hosts,
    NetworkAndHosts,
}

/// A host that may suffer faults.
pub struct Target {
    pub name: String,
    pub faults: UnboundedSender<HostFault>,
}

/// Causes faults until a time.
pub struct FaultPlan {
    pub disturbance: Disturbance,
    pub until: Instant,
    pub chance: Chance,
    pub targets: Vec<Target>,
    /// All hosts, with those of clients.
    pub addresses: Vec<IpAddr>,
    pub net: Arc<SimNet>,
    pub facts: Facts,
    pub log: Log,
}

impl FaultPlan {
    /// Causes the faults; then heals the network, and returns the hosts.
    pub async fn run(mut self) -> Vec<Target> {
        let mut numbers = SplitMix::new(self.chance.between(0, u64::MAX));
        if self.disturbance != Disturbance::Nothing {
            self.facts.divide();
        }
        let rate = *self
            .chance
            .pick(&[3_000, 15_000, 60_000])
            .unwrap_or(&15_000);
        while self.disturbance != Disturbance::Nothing {
            let pause = self.chance.millis(1, rate);
            sleep(pause).await;
            if Instant::now() >= self.until {
                break;
            }
            let is_of_network = match self.disturbance {
                Disturbance::Network => true,
                Disturbance::Hosts => false,
                _ => self.chance.happens(500),
            };
            if is_of_network {
                let fault = NetFault::draw(&mut numbers, &self.addresses);
                self.log.event("network", &fault);
                self.net.inject(&fault);
            } else {
                self.hit_host();
            }
        }
        sleep_until(self.until).await;
        self.net.heal();
        self.log.event("run", "the faults have stopped");
        self.targets
    }

    fn hit_host(&mut self) {
        let fault = match self.chance.count(0, 9) {
            0..=4 => HostFault::Crash(self.duration()),
            5 | 6 => HostFault::Sleep(self.duration()),
            7 => HostFault::Terminate,
            _ => {
                let jump = self.chance.between(0, 2 * JUMP_MICROS);
                HostFault::Jump(jump.cast_signed() - JUMP_MICROS.cast_signed())
            }
        };
        let Some(target) = self.chance.pick(&self.targets) else {
            return;
        };
        self.log
            .event("fault", format_args!("{}: {fault:?}", target.name));
        // A host that is down does not suffer it.
        let _ = target.faults.send(fault);
    }

    fn duration(&mut self) -> Duration {
        let most = *self.chance.pick(&[100, 4_000, 60_000]).unwrap_or(&4_000);
        self.chance.millis(1, most)
    }
}
