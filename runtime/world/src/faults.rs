//! Causes the faults of a run: of the network between hosts, and of the hosts.

use std::sync::Arc;
use std::time::Duration;

use napreduce_local::world::SimNet;
use napreduce_local::world::disk::{CallFault, FaultRates, SimDisk, UnsyncedFiles};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, sleep_until};

use crate::log::Log;
use crate::plan::{DiskFault, Fault, HostFault, PlannedFault};

/// A host that may suffer faults.
#[derive(Debug, Clone)]
pub struct Target {
    pub name: String,
    pub faults: UnboundedSender<HostFault>,
}

/// The faults that are to happen.
pub struct Faults {
    pub planned: Vec<PlannedFault>,
    pub began: Instant,
    pub until: Duration,
    pub targets: Vec<Target>,
    /// The coordinator's disk, and what happens to its calls without faults.
    pub disk: SimDisk,
    pub usual: FaultRates,
    pub outputs: UnsyncedFiles,
    pub net: Arc<SimNet>,
    pub log: Log,
}

impl Faults {
    /// Causes the faults; then heals the network, and returns the hosts.
    pub async fn run(self) -> Vec<Target> {
        for PlannedFault { number, at, fault } in &self.planned {
            sleep_until(self.began + *at).await;
            match fault {
                Fault::Network(fault) => {
                    self.log
                        .event("network", format_args!("fault-{number}: {fault}"));
                    self.net.inject(fault);
                }
                Fault::Host(name, fault) => self.hit_host(*number, name, *fault),
                Fault::Disk(fault) => {
                    self.log
                        .event("fault", format_args!("fault-{number}: disk: {fault:?}"));
                    self.hit_disk(fault);
                }
            }
        }
        sleep_until(self.began + self.until).await;
        self.net.heal();
        heal(&self.disk, &self.usual);
        self.disk.forget_faults();
        self.outputs.forget_end();
        self.log.event("run", "the faults have stopped");
        self.targets
    }

    fn hit_host(&self, number: u32, name: &str, fault: HostFault) {
        // A host may have been left out.
        let Some(target) = self.targets.iter().find(|target| target.name == name) else {
            return;
        };
        self.log
            .event("fault", format_args!("fault-{number}: {name}: {fault:?}"));
        // A host that is down does not suffer it.
        let _ = target.faults.send(fault);
    }

    fn hit_disk(&self, fault: &DiskFault) {
        match fault {
            DiskFault::PowerLoss { calls } => {
                let call = self.disk.calls() + calls;
                self.disk.fail_call(call, CallFault::LastCall);
            }
            DiskFault::Full { free, lasting } => {
                let used = self.disk.used_bytes();
                self.disk.set_capacity(Some(used + free));
                self.heal_disk_after(*lasting);
            }
            DiskFault::Rates { rates, lasting } => {
                self.disk.set_rates(*rates);
                self.heal_disk_after(*lasting);
            }
        }
    }

    fn heal_disk_after(&self, lasting: Duration) {
        let disk = self.disk.clone();
        let usual = self.usual;
        spawn_local(async move {
            sleep(lasting).await;
            heal(&disk, &usual);
        });
    }
}

/// Makes calls to a disk succeed again.
fn heal(disk: &SimDisk, usual: &FaultRates) {
    disk.set_rates(*usual);
    disk.set_capacity(None);
}
