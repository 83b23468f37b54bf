//! Does things at certain moments of the protocol: gives a command just when a grant is sent, breaks a connection on which a
//! report is on its way, lets the coordinator lose its power between the end of the last task and the end of the job.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::{AttemptId, FaultPlace, JobId, Order, Report, WorkerId};
use napreduce_local::world::disk::{CallFault, SimDisk, UnsyncedFiles};
use napreduce_local::world::{Fact, LinkSettings, NetFault, SimNet};
use napreduce_protocol::{ToWorker, WorkerReport};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep_until};

use crate::faults::Target;
use crate::log::Log;
use crate::plan::{
    Breakage, COORDINATOR, Command, HostFault, Moment, PlannedReaction, Reaction, client_address,
    coordinator_address, worker_address,
};

/// Time in which a report that is made is sent.
const SENT_WITHIN: Duration = Duration::from_millis(2);

/// A moment that was reached.
#[derive(Debug, Clone, Copy)]
pub struct Reached {
    pub moment: Moment,
    pub subject: Subject,
}

/// Whom a moment is about.
#[derive(Debug, Clone, Copy)]
pub enum Subject {
    /// The client of this number.
    Client(u32),
    Attempt(AttemptId, WorkerId),
    Job(JobId),
}

impl Reached {
    /// Returns the moment that a step of the live code is, if it is one.
    pub fn from_fact(fact: &Fact<'_>) -> Option<Reached> {
        match fact {
            Fact::OrderSent {
                worker,
                message: ToWorker::Ordered { order, .. },
            } => {
                let moment = match order {
                    Order::Launch { .. } => Moment::Launch,
                    Order::Suspend { .. } => Moment::Suspend,
                    Order::Resume { .. } => Moment::Resume,
                    Order::Checkpoint { .. } => Moment::Checkpoint,
                    Order::Kill { .. } => Moment::Kill,
                    Order::Commit { .. } => Moment::Grant,
                    Order::MoreInputs { .. } | Order::MoveOutput { .. } => return None,
                };
                Some(Reached {
                    moment,
                    subject: Subject::Attempt(order.attempt(), *worker),
                })
            }
            Fact::ReportMade { worker, report, .. } => {
                let (moment, attempt) = moment_of_report(report)?;
                Some(Reached {
                    moment,
                    subject: Subject::Attempt(attempt, *worker),
                })
            }
            Fact::JobEnding { job, .. } => Some(Reached {
                moment: Moment::Ending,
                subject: Subject::Job(*job),
            }),
            _ => None,
        }
    }
}

fn moment_of_report(report: &WorkerReport) -> Option<(Moment, AttemptId)> {
    match report {
        WorkerReport::Happened { attempt, report } => {
            let moment = match report {
                Report::CommitRequested => Moment::CommitRequest,
                Report::Suspended | Report::SuspendedAtWork => Moment::Suspended,
                Report::Killed | Report::Checkpointed => Moment::End,
                _ => return None,
            };
            Some((moment, *attempt))
        }
        WorkerReport::Failed { attempt, error } if error.place == FaultPlace::SharedStorage => {
            Some((Moment::StorageFailure, *attempt))
        }
        WorkerReport::Finished { attempt, .. } | WorkerReport::Failed { attempt, .. } => {
            Some((Moment::End, *attempt))
        }
        _ => None,
    }
}

/// What is done next.
#[derive(Debug)]
enum Step {
    Begin(PlannedReaction, Subject),
    Network(NetFault),
}

/// The reactions that are to happen.
pub struct Reactions {
    pub planned: Vec<PlannedReaction>,
    pub reached: UnboundedReceiver<Reached>,
    /// Nothing is done after this time.
    pub until: Instant,
    pub targets: Vec<Target>,
    /// Gives commands.
    pub commands: UnboundedSender<(Command, Subject)>,
    /// The names of the workers that have joined.
    pub names: Box<dyn Fn(WorkerId) -> Option<String>>,
    pub disk: SimDisk,
    pub outputs: UnsyncedFiles,
    pub net: Arc<SimNet>,
    pub log: Log,
}

impl Reactions {
    /// Does what is planned when its moment comes.
    pub async fn run(mut self) {
        let mut counts: BTreeMap<Moment, u32> = BTreeMap::new();
        let mut due: BTreeMap<(Instant, u64), Step> = BTreeMap::new();
        let mut scheduled = 0;
        loop {
            let next = due.first_key_value().map(|((at, _), _)| *at);
            let next = next.unwrap_or(self.until).min(self.until);
            tokio::select! {
                biased;
                () = sleep_until(next) => {
                    if Instant::now() >= self.until {
                        return;
                    }
                    let Some((_, step)) = due.pop_first() else {
                        continue;
                    };
                    for (at, step) in self.act(step) {
                        scheduled += 1;
                        due.insert((at, scheduled), step);
                    }
                }
                reached = self.reached.recv() => {
                    let Some(Reached { moment, subject }) = reached else {
                        return;
                    };
                    let count = counts.entry(moment).or_default();
                    *count += 1;
                    for planned in &self.planned {
                        if planned.moment == moment && planned.count == *count {
                            scheduled += 1;
                            let at = Instant::now() + planned.after;
                            due.insert((at, scheduled), Step::Begin(*planned, subject));
                        }
                    }
                }
            }
        }
    }

    /// Does a step; returns the steps that follow, and when.
    fn act(&self, step: Step) -> Vec<(Instant, Step)> {
        let (planned, subject) = match step {
            Step::Network(fault) => {
                self.log.event("network", format_args!("{fault}"));
                self.net.inject(&fault);
                return Vec::new();
            }
            Step::Begin(planned, subject) => (planned, subject),
        };
        let PlannedReaction {
            number, reaction, ..
        } = planned;
        self.log.event(
            "fault",
            format_args!("reaction-{number}: {reaction:?} at {subject:?}"),
        );
        match reaction {
            Reaction::Command(command) => {
                // The operator stays until the end.
                let _ = self.commands.send((command, subject));
            }
            Reaction::Break(breakage) => return self.break_connections(breakage, subject),
            Reaction::Coordinator(fault) => self.hit(COORDINATOR, fault),
            Reaction::PowerLoss { calls } => {
                let call = self.disk.calls() + calls;
                self.disk.fail_call(call, CallFault::LastCall);
            }
            Reaction::OutputPowerLoss { calls } => self.outputs.end_after(calls),
            Reaction::LeaveUnheard(lasting) => {
                if let Subject::Attempt(_, worker) = subject
                    && let Some(name) = (self.names)(worker)
                {
                    self.hit(&name, HostFault::Terminate);
                }
                return self.break_connections(Breakage::BlockTo(lasting), subject);
            }
            Reaction::Worker(fault) => {
                if let Subject::Attempt(_, worker) = subject
                    && let Some(name) = (self.names)(worker)
                {
                    self.hit(&name, fault);
                }
            }
        }
        Vec::new()
    }

    fn hit(&self, name: &str, fault: HostFault) {
        if let Some(target) = self.targets.iter().find(|target| target.name == name) {
            // A host that is down does not suffer it.
            let _ = target.faults.send(fault);
        }
    }

    fn break_connections(&self, breakage: Breakage, subject: Subject) -> Vec<(Instant, Step)> {
        let Some(peer) = self.address_of(subject) else {
            return Vec::new();
        };
        let coordinator = coordinator_address();
        let reset_peer = NetFault::ResetEnds {
            host: peer,
            peer: coordinator,
        };
        let (first, second) = match breakage {
            Breakage::Reset => {
                let fault = NetFault::Reset {
                    one: peer,
                    other: coordinator,
                };
                (fault, None)
            }
            Breakage::ResetPeer => (reset_peer, None),
            Breakage::ResetCoordinator => {
                let fault = NetFault::ResetEnds {
                    host: coordinator,
                    peer,
                };
                (fault, None)
            }
            Breakage::Sever => {
                let fault = NetFault::Sever {
                    one: peer,
                    other: coordinator,
                };
                (fault, None)
            }
            Breakage::BlockTo(lasting) => {
                let fault = NetFault::BlockOneWay {
                    from: peer,
                    to: coordinator,
                    lasting,
                };
                (fault, Some((lasting, reset_peer)))
            }
            Breakage::BlockFrom(lasting) => {
                let fault = NetFault::BlockOneWay {
                    from: coordinator,
                    to: peer,
                    lasting,
                };
                (fault, Some((lasting, reset_peer)))
            }
            Breakage::Overtake(late) => {
                let fault = NetFault::Change {
                    from: peer,
                    to: coordinator,
                    settings: LinkSettings {
                        latency: late..=late,
                        ..LinkSettings::default()
                    },
                    lasting: SENT_WITHIN,
                };
                (fault, Some((SENT_WITHIN, reset_peer)))
            }
        };
        self.net.inject(&first);
        match second {
            Some((after, fault)) => vec![(Instant::now() + after, Step::Network(fault))],
            None => Vec::new(),
        }
    }

    fn address_of(&self, subject: Subject) -> Option<IpAddr> {
        match subject {
            Subject::Client(number) => Some(client_address(number)),
            Subject::Attempt(_, worker) => {
                let name = (self.names)(worker)?;
                let number = name.strip_prefix("worker-")?.parse().ok()?;
                Some(worker_address(number))
            }
            Subject::Job(_) => None,
        }
    }
}
