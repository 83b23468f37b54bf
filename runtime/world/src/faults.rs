//! The faults of a run: of the network between hosts, and of the hosts.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use napreduce_local::world::disk::{CallFault, FaultRates, SimDisk};
use napreduce_local::world::{NetFault, SimNet, SplitMix};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, sleep_until};

use crate::chance::Chance;
use crate::facts::Facts;
use crate::host::HostFault;
use crate::log::Log;

/// The most by which a wall clock jumps, in microseconds: two hours.
const JUMP_MICROS: u64 = 2 * 3600 * 1_000_000;

/// The most calls to the coordinator's disk until it loses its power. Some hundred are made for one job.
const CALLS_MAX: u64 = 300;

/// What goes wrong beside the tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    Nothing,
    /// The coordinator's host loses its power, and its disk fails.
    Coordinator,
    Network,
    Hosts,
    NetworkAndHosts,
}

impl Disturbance {
    /// Returns whether calls to the coordinator's disk may fail.
    pub fn fails_disk(self) -> bool {
        match self {
            Disturbance::Nothing | Disturbance::Network => false,
            Disturbance::Coordinator | Disturbance::Hosts | Disturbance::NetworkAndHosts => true,
        }
    }
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
    /// The coordinator's host first.
    pub targets: Vec<Target>,
    /// The coordinator's disk.
    pub disk: SimDisk,
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
        if !matches!(
            self.disturbance,
            Disturbance::Nothing | Disturbance::Coordinator
        ) {
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
                Disturbance::Hosts | Disturbance::Coordinator => false,
                _ => self.chance.happens(500),
            };
            if is_of_network {
                let fault = NetFault::draw(&mut numbers, &self.addresses);
                self.log.event("network", &fault);
                self.net.inject(&fault);
            } else if self.disturbance == Disturbance::Coordinator || self.chance.happens(250) {
                self.hit_coordinator();
            } else {
                self.hit_host();
            }
        }
        sleep_until(self.until).await;
        self.net.heal();
        heal(&self.disk);
        self.disk.forget_faults();
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

    /// Lets the coordinator's host lose its power, or its disk fail for some time.
    fn hit_coordinator(&mut self) {
        let lasting = self.duration();
        match self.chance.count(0, 9) {
            0..=2 => {
                if let Some(host) = self.targets.first() {
                    // A host that is down does not suffer it.
                    let _ = host.faults.send(HostFault::Crash(lasting));
                }
            }
            3..=6 => {
                let calls = self.chance.between(0, CALLS_MAX);
                self.log.event(
                    "fault",
                    format_args!("power loss in {calls} calls to the disk"),
                );
                let call = self.disk.calls() + calls;
                self.disk.fail_call(call, CallFault::LastCall);
            }
            7 => {
                let free = self.chance.between(0, 4096);
                let fault = format!("{free} bytes are free on the disk for {lasting:?}");
                self.log.event("fault", fault);
                let used = self.disk.used_bytes();
                self.disk.set_capacity(Some(used + free));
                self.heal_disk_after(lasting);
            }
            _ => {
                let rates = self.draw_rates();
                let fault = format!("the disk has {rates:?} for {lasting:?}");
                self.log.event("fault", fault);
                self.disk.set_rates(rates);
                self.heal_disk_after(lasting);
            }
        }
    }

    fn draw_rates(&mut self) -> FaultRates {
        let mut rates = FaultRates::default();
        match self.chance.count(0, 3) {
            0 => rates.errors = 0.01,
            1 => rates.short = 0.3,
            2 => rates.sync = self.chance.millis(1, 300),
            _ => rates.stalls = (0.05, self.chance.millis(1, 4_000)),
        }
        rates
    }

    fn heal_disk_after(&self, lasting: Duration) {
        let disk = self.disk.clone();
        spawn_local(async move {
            sleep(lasting).await;
            heal(&disk);
        });
    }

    fn duration(&mut self) -> Duration {
        let most = *self.chance.pick(&[100, 4_000, 60_000]).unwrap_or(&4_000);
        self.chance.millis(1, most)
    }
}

/// Makes calls to a disk succeed at once.
fn heal(disk: &SimDisk) {
    disk.set_rates(FaultRates::default());
    disk.set_capacity(None);
}
