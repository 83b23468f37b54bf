//! Oracles that judge each step of the live code. Each returns a violation as soon as a step breaks its rule.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use napreduce_engine::{AttemptId, Order, Report, TaskId, WorkerId};
use napreduce_local::world::Fact;
use napreduce_protocol::{ToWorker, WorkerReport};

use tokio::time::Instant;

use crate::facts::Facts;

/// The time in which a message is delivered when there are no faults: longer than it takes to notice that a peer is gone.
const DELIVERED_WITHIN: Duration = Duration::from_secs(180);

/// Journal first: no effect leaves a coordinator before every decided entry is written.
#[derive(Debug, Default)]
pub struct JournalOracle {
    unwritten: u32,
}

impl JournalOracle {
    /// Judges a step.
    pub fn judge(&mut self, fact: &Fact<'_>) -> Option<String> {
        match fact {
            // Another coordinator; what the last one had not written is void.
            Fact::ReplayBegins | Fact::EntriesWritten => self.unwritten = 0,
            Fact::EntryDecided => self.unwritten += 1,
            Fact::EffectReleased { what } if self.unwritten > 0 => {
                return Some(format!(
                    "{what} leaves the coordinator before {} entries are journaled",
                    self.unwritten
                ));
            }
            _ => {}
        }
        None
    }
}

/// Exactly-once: a worker carries out every order once, in order and as it was sent; a coordinator applies every report
/// once, in order and as it was made.
#[derive(Debug, Default)]
pub struct ExchangeOracle {
    sent: BTreeMap<(WorkerId, u64), ToWorker>,
    /// The last order that each worker has carried out.
    followed: BTreeMap<WorkerId, u64>,
    made: BTreeMap<(WorkerId, u64), WorkerReport>,
    /// The last report of each worker that the present coordinator has applied.
    applied: BTreeMap<WorkerId, u64>,
}

impl ExchangeOracle {
    /// Judges a step.
    pub fn judge(&mut self, fact: &Fact<'_>) -> Option<String> {
        match fact {
            Fact::OrderSent { worker, message } => self.on_sent(*worker, message),
            Fact::OrderFollowed { worker, message } => self.on_followed(*worker, message),
            Fact::ReportMade {
                worker,
                number,
                report,
            } => {
                self.made.insert((*worker, *number), (*report).clone());
                None
            }
            Fact::ReportApplied {
                worker,
                number,
                report,
            } => self.on_applied(*worker, *number, report),
            // It may have lost reports that were applied and not written.
            Fact::ReplayBegins => {
                self.applied.clear();
                None
            }
            _ => None,
        }
    }

    fn on_sent(&mut self, worker: WorkerId, message: &ToWorker) -> Option<String> {
        let number = message.number()?;
        let before = self.sent.insert((worker, number), message.clone())?;
        if before == *message {
            return None;
        }
        Some(format!(
            "order {number} to {worker} is {message:?}, but was sent before as {before:?}"
        ))
    }

    fn on_followed(&mut self, worker: WorkerId, message: &ToWorker) -> Option<String> {
        let number = message.number()?;
        let before = self.followed.insert(worker, number).unwrap_or_default();
        if number != before + 1 {
            return Some(format!(
                "{worker} carries out order {number} after order {before}"
            ));
        }
        if self.sent.get(&(worker, number)) == Some(message) {
            return None;
        }
        Some(format!(
            "{worker} carries out {message:?}, which was not sent so"
        ))
    }

    fn on_applied(
        &mut self,
        worker: WorkerId,
        number: u64,
        report: &WorkerReport,
    ) -> Option<String> {
        let before = self.applied.insert(worker, number);
        if let Some(before) = before
            && number != before + 1
        {
            return Some(format!(
                "report {number} of {worker} is applied after report {before}"
            ));
        }
        match self.made.get(&(worker, number)) {
            Some(made) if is_of_same_event(made, report) => None,
            Some(made) => Some(format!(
                "report {number} of {worker} is applied as {report:?}, but was made as {made:?}"
            )),
            None => Some(format!(
                "report {number} of {worker} is applied, but was never made: {report:?}"
            )),
        }
    }
}

/// Nothing stays undelivered: soon after the faults have stopped, each report that a worker makes is applied, and each
/// order that is queued is carried out.
#[derive(Debug)]
pub struct DeliveryOracle {
    /// When the faults stop.
    healed: Instant,
    /// When the reports of each worker that are not applied were made.
    reports: BTreeMap<WorkerId, BTreeMap<u64, Instant>>,
    /// When the orders to each worker that are not carried out were first sent or kept for it.
    orders: BTreeMap<WorkerId, BTreeMap<u64, Instant>>,
    /// The workers that have left or are lost. The order to leave is queued for a worker that counts as gone already, and which
    /// may end before the order arrives.
    gone: BTreeSet<WorkerId>,
    /// The last order that each worker has carried out. A replay queues it again if it lacks the acknowledgement.
    followed: BTreeMap<WorkerId, u64>,
    has_reported: bool,
}

impl DeliveryOracle {
    /// Creates the oracle of a run whose faults stop then.
    pub fn new(healed: Instant) -> DeliveryOracle {
        DeliveryOracle {
            healed,
            reports: BTreeMap::new(),
            orders: BTreeMap::new(),
            gone: BTreeSet::new(),
            followed: BTreeMap::new(),
            has_reported: false,
        }
    }

    /// Judges a step.
    pub fn judge(&mut self, fact: &Fact<'_>) -> Option<String> {
        let now = Instant::now();
        match fact {
            // The coordinator may have given up this worker, which does not know it yet.
            Fact::ReportMade { worker, number, .. } if !self.gone.contains(worker) => {
                self.reports
                    .entry(*worker)
                    .or_default()
                    .insert(*number, now);
            }
            Fact::ReportApplied { worker, number, .. } => {
                if let Some(made) = self.reports.get_mut(worker) {
                    made.retain(|other, _| other > number);
                }
            }
            Fact::OrderQueued { worker, message } => {
                let followed = self.followed.get(worker).copied().unwrap_or_default();
                if let Some(number) = message.number()
                    && number > followed
                    && !self.gone.contains(worker)
                {
                    let queued = self.orders.entry(*worker).or_default();
                    queued.entry(number).or_insert(now);
                }
            }
            Fact::OrderFollowed { worker, message } => {
                if let Some(number) = message.number() {
                    self.followed.insert(*worker, number);
                    if let Some(queued) = self.orders.get_mut(worker) {
                        queued.retain(|other, _| *other > number);
                    }
                }
            }
            // A coordinator that has forgotten a worker gives its number to another one.
            Fact::WorkerJoined { worker, .. } => {
                self.gone.remove(worker);
                self.followed.remove(worker);
            }
            Fact::WorkerGone { worker } => {
                self.reports.remove(worker);
                self.orders.remove(worker);
                self.gone.insert(*worker);
            }
            _ => {}
        }
        if self.has_reported || now < self.healed + DELIVERED_WITHIN {
            return None;
        }
        let late = now - DELIVERED_WITHIN;
        let late_report = first_before(&self.reports, late);
        let late_order = first_before(&self.orders, late);
        let (what, (worker, number)) = match (late_report, late_order) {
            (Some(report), _) => ("report", report),
            (None, Some(order)) => ("order", order),
            (None, None) => return None,
        };
        self.has_reported = true;
        Some(format!(
            "{what} {number} of {worker} is not delivered although there are no faults"
        ))
    }
}

/// Returns the first that is older than `late`.
fn first_before(
    undelivered: &BTreeMap<WorkerId, BTreeMap<u64, Instant>>,
    late: Instant,
) -> Option<(WorkerId, u64)> {
    for (worker, times) in undelivered {
        if let Some((number, at)) = times.first_key_value()
            && *at < late
        {
            return Some((*worker, *number));
        }
    }
    None
}

/// Returns whether an applied report is one that was made. The coordinator changes errors that a whole output directory
/// caused.
fn is_of_same_event(made: &WorkerReport, applied: &WorkerReport) -> bool {
    match (made, applied) {
        (
            WorkerReport::Failed { attempt, .. },
            WorkerReport::Failed {
                attempt: applied, ..
            },
        ) => attempt == applied,
        _ => made == applied,
    }
}

/// One commit per task: no attempt gets the grant before it is certain that no earlier one uses it.
#[derive(Debug, Default)]
pub struct GrantOracle {
    /// The grants in use, with the workers that have them.
    granted: BTreeMap<TaskId, (AttemptId, WorkerId)>,
    /// The order of each grant.
    orders: BTreeMap<AttemptId, u64>,
    /// Attempts whose end is known.
    ended: BTreeSet<AttemptId>,
}

impl GrantOracle {
    /// Returns whether a grant is in use.
    pub fn has_grants(&self) -> bool {
        !self.granted.is_empty()
    }

    /// Judges a step.
    pub fn judge(&mut self, fact: &Fact<'_>) -> Option<String> {
        match fact {
            Fact::OrderSent {
                worker,
                message:
                    ToWorker::Ordered {
                        number,
                        order: Order::Commit { attempt },
                        ..
                    },
            } => self.on_grant(*worker, *attempt, *number),
            Fact::ReportApplied { report, .. } => {
                self.on_report(report);
                None
            }
            Fact::WorkerGone { worker } => {
                self.granted.retain(|_, (_, holder)| holder != worker);
                None
            }
            _ => None,
        }
    }

    fn on_grant(&mut self, worker: WorkerId, attempt: AttemptId, number: u64) -> Option<String> {
        // It is sent again after a reconnect.
        if let Some(before) = self.orders.insert(attempt, number) {
            if before == number {
                return None;
            }
            return Some(format!("{attempt} is granted the commit twice"));
        }
        if self.ended.contains(&attempt) {
            // It saved its work instead; the order was decided before that was known.
            return None;
        }
        let earlier = self.granted.insert(attempt.task, (attempt, worker));
        let (earlier, _) = earlier?;
        Some(format!(
            "{attempt} is granted the commit while {earlier} has the grant"
        ))
    }

    fn on_report(&mut self, report: &WorkerReport) {
        let ended = match report {
            WorkerReport::Finished { attempt, .. }
            | WorkerReport::Failed { attempt, .. }
            | WorkerReport::Happened {
                attempt,
                report: Report::Killed | Report::Checkpointed,
            } => attempt,
            _ => return,
        };
        self.ended.insert(*ended);
        if let Some((holder, _)) = self.granted.get(&ended.task)
            && holder == ended
        {
            self.granted.remove(&ended.task);
        }
    }
}

/// What an operator paused or suspended is started again only when an operator says so.
#[derive(Debug)]
pub struct HoldOracle {
    facts: Facts,
    is_replaying: bool,
}

impl HoldOracle {
    /// Creates the oracle for what operators have done according to these facts.
    pub fn new(facts: &Facts) -> HoldOracle {
        HoldOracle {
            facts: facts.clone(),
            is_replaying: false,
        }
    }

    /// Judges a step.
    pub fn judge(&mut self, fact: &Fact<'_>) -> Option<String> {
        match fact {
            Fact::ReplayBegins => self.is_replaying = true,
            Fact::ReplayEnds => self.is_replaying = false,
            Fact::OrderQueued {
                message:
                    ToWorker::Ordered {
                        order: Order::Launch { attempt, .. },
                        ..
                    },
                ..
            } if !self.is_replaying => return self.on_launch(*attempt),
            _ => {}
        }
        None
    }

    fn on_launch(&self, attempt: AttemptId) -> Option<String> {
        if self.facts.was_answered_as_paused(attempt.task.job) {
            return Some(format!("{attempt} is launched although its job is paused"));
        }
        let held = self.facts.held_attempt_of(attempt.task)?;
        Some(format!("{attempt} is launched although {held} is held"))
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{JobId, TaskKind};

    use super::*;

    const WORKER: WorkerId = WorkerId(1);

    fn attempt(number: u32) -> AttemptId {
        let task = TaskId {
            job: JobId(1),
            kind: TaskKind::Map,
            index: 0,
        };
        AttemptId { task, number }
    }

    fn commit(number: u64, of: u32) -> ToWorker {
        ToWorker::Ordered {
            number,
            order: Order::Commit {
                attempt: attempt(of),
            },
            work: None,
        }
    }

    fn killed(of: u32) -> WorkerReport {
        WorkerReport::Happened {
            attempt: attempt(of),
            report: Report::Killed,
        }
    }

    fn sent(message: &ToWorker) -> Fact<'_> {
        Fact::OrderSent {
            worker: WORKER,
            message,
        }
    }

    fn applied(number: u64, report: &WorkerReport) -> Fact<'_> {
        Fact::ReportApplied {
            worker: WORKER,
            number,
            report,
        }
    }

    #[test]
    fn effect_before_its_entry_is_found() {
        let mut oracle = JournalOracle::default();
        let effect = Fact::EffectReleased { what: "an order" };
        assert_eq!(oracle.judge(&effect), None);
        oracle.judge(&Fact::EntryDecided);
        assert!(oracle.judge(&effect).is_some());
        oracle.judge(&Fact::EntriesWritten);
        assert_eq!(oracle.judge(&effect), None);
    }

    #[test]
    fn order_that_is_skipped_repeated_or_changed_is_found() {
        let mut oracle = ExchangeOracle::default();
        let [first, second, other] = [commit(1, 1), commit(2, 2), commit(2, 3)];
        for message in [&first, &second, &second] {
            assert_eq!(oracle.judge(&sent(message)), None);
        }
        let followed = |message| Fact::OrderFollowed {
            worker: WORKER,
            message,
        };
        assert!(oracle.judge(&followed(&second)).is_some(), "1 is skipped");
        let mut oracle = ExchangeOracle::default();
        oracle.judge(&sent(&first));
        assert_eq!(oracle.judge(&followed(&first)), None);
        assert!(oracle.judge(&followed(&first)).is_some(), "it is repeated");
        oracle.judge(&sent(&second));
        assert!(oracle.judge(&sent(&other)).is_some(), "it is changed");
    }

    #[test]
    fn report_that_is_skipped_repeated_or_invented_is_found() {
        let mut oracle = ExchangeOracle::default();
        for number in 1..=3 {
            oracle.judge(&Fact::ReportMade {
                worker: WORKER,
                number,
                report: &killed(1),
            });
        }
        assert_eq!(oracle.judge(&applied(1, &killed(1))), None);
        assert!(oracle.judge(&applied(1, &killed(1))).is_some());
        assert!(oracle.judge(&applied(3, &killed(1))).is_some());
        oracle.judge(&Fact::ReplayBegins);
        assert_eq!(oracle.judge(&applied(2, &killed(1))), None);
        assert!(oracle.judge(&applied(3, &killed(2))).is_some());
        assert!(oracle.judge(&applied(4, &killed(1))).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn undelivered_report_and_order_are_found() {
        let report = killed(1);
        let made = Fact::ReportMade {
            worker: WORKER,
            number: 1,
            report: &report,
        };
        let message = commit(1, 1);
        let queued = Fact::OrderQueued {
            worker: WORKER,
            message: &message,
        };
        for undelivered in [&made, &queued] {
            let healed = Instant::now() + Duration::from_secs(60);
            let mut oracle = DeliveryOracle::new(healed);
            assert_eq!(oracle.judge(undelivered), None);
            tokio::time::advance(DELIVERED_WITHIN).await;
            assert_eq!(oracle.judge(&Fact::EntryDecided), None, "there are faults");
            tokio::time::advance(DELIVERED_WITHIN).await;
            assert!(oracle.judge(&Fact::EntryDecided).is_some());
            assert_eq!(oracle.judge(&Fact::EntryDecided), None, "it is known");
            let mut oracle = DeliveryOracle::new(healed);
            oracle.judge(undelivered);
            oracle.judge(&Fact::WorkerGone { worker: WORKER });
            tokio::time::advance(DELIVERED_WITHIN * 2).await;
            assert_eq!(oracle.judge(&Fact::EntryDecided), None);
        }
        let healed = Instant::now();
        let mut oracle = DeliveryOracle::new(healed);
        oracle.judge(&Fact::WorkerGone { worker: WORKER });
        oracle.judge(&queued);
        tokio::time::advance(DELIVERED_WITHIN * 2).await;
        assert_eq!(oracle.judge(&Fact::EntryDecided), None, "it is gone");
        let mut oracle = DeliveryOracle::new(healed);
        oracle.judge(&queued);
        oracle.judge(&Fact::OrderFollowed {
            worker: WORKER,
            message: &message,
        });
        oracle.judge(&queued);
        tokio::time::advance(DELIVERED_WITHIN * 2).await;
        assert_eq!(oracle.judge(&Fact::EntryDecided), None, "by a replay");
        oracle.judge(&Fact::WorkerGone { worker: WORKER });
        oracle.judge(&Fact::WorkerJoined {
            worker: WORKER,
            name: "w",
        });
        oracle.judge(&queued);
        tokio::time::advance(DELIVERED_WITHIN * 2).await;
        assert!(oracle.judge(&Fact::EntryDecided).is_some());
    }

    #[test]
    fn second_grant_is_found() {
        let mut oracle = GrantOracle::default();
        let [first, second, again] = [commit(1, 1), commit(2, 2), commit(3, 2)];
        assert_eq!(oracle.judge(&sent(&first)), None);
        assert_eq!(oracle.judge(&sent(&first)), None, "it is sent again");
        assert!(oracle.judge(&sent(&second)).is_some());
        let mut oracle = GrantOracle::default();
        oracle.judge(&sent(&first));
        oracle.judge(&applied(1, &killed(1)));
        assert_eq!(oracle.judge(&sent(&second)), None);
        assert!(oracle.judge(&sent(&again)).is_some());
        let mut oracle = GrantOracle::default();
        oracle.judge(&sent(&first));
        oracle.judge(&Fact::WorkerGone { worker: WORKER });
        assert_eq!(oracle.judge(&sent(&second)), None);
    }

    #[test]
    fn launch_of_held_task_is_found() {
        let facts = Facts::default();
        let mut oracle = HoldOracle::new(&facts);
        let message = ToWorker::Ordered {
            number: 1,
            order: Order::Launch {
                attempt: attempt(2),
                from: napreduce_engine::Start::Fresh,
                inputs: Vec::new(),
            },
            work: None,
        };
        let queued = Fact::OrderQueued {
            worker: WORKER,
            message: &message,
        };
        assert_eq!(oracle.judge(&queued), None);
        facts.hold(attempt(1), 0);
        assert!(oracle.judge(&queued).is_some());
        oracle.judge(&Fact::ReplayBegins);
        assert_eq!(oracle.judge(&queued), None, "it was decided before");
        oracle.judge(&Fact::ReplayEnds);
        facts.release(attempt(1));
        assert_eq!(oracle.judge(&queued), None);
    }
}
