//! Runs the preemption monitor periodically while demand exceeds free slots, requests preemptions, and
//! cancels requests that a later round does not confirm.

use std::collections::BTreeSet;

use napreduce_engine::{Actions, AttemptId, ClusterView, JobId, Preempt, Span, TaskKind, Time};
use serde::{Deserialize, Serialize};

use super::beneficiaries::Beneficiaries;
use super::configuration::MonitorConfiguration;
use super::marks::Marks;
use super::monitor::{Pass, QueueTree, Round, RoundOutcome, Rounds, Victim};
use super::snapshot;
use super::usage::Usage;

/// The monitor and its state.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    configuration: MonitorConfiguration,
    next: Option<Time>,
    rounds: Rounds<AttemptId>,
    marks: Marks,
}

/// The saved state.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedWatch {
    next: Option<Time>,
    asked: Vec<(AttemptId, Time, Span)>,
    #[serde(default)]
    marks: Marks,
}

/// An attempt chosen by a round.
struct Candidate {
    attempt: AttemptId,
    wait: Span,
    /// The beneficiary and the reason; `None` if preemption was already requested.
    request: Option<(JobId, String)>,
}

impl Watch {
    /// Creates the monitor from a checked configuration.
    pub fn new(configuration: MonitorConfiguration) -> Watch {
        let rounds = Rounds::new(configuration.observe_only);
        Watch { configuration, next: None, rounds, marks: Marks::default() }
    }

    /// Returns the time of the next round, if one is due.
    pub fn next_wakeup(&self, now: Time) -> Option<Time> {
        self.next.filter(|&at| at > now)
    }

    /// Runs a round per kind if it is due, and preempts marked attempts whose slots are needed.
    pub fn run(&mut self, now: Time, usage: &Usage, view: &ClusterView<'_>, actions: &mut Actions) {
        self.run_if_due(now, usage, view, actions);
        for &kind in actions.kinds() {
            self.marks.preempt_needed(&self.configuration, usage, view, kind, actions);
        }
    }

    fn run_if_due(&mut self, now: Time, usage: &Usage, view: &ClusterView<'_>, actions: &mut Actions) {
        let kinds = actions.kinds();
        if self.next.is_some_and(|at| at > now) {
            return;
        }
        if self.next.is_some() {
            let chosen = kinds.iter().flat_map(|&kind| self.round(usage, view, kind)).collect();
            self.act(now, view, chosen, actions);
        }
        let is_wanted = kinds.iter().any(|&kind| usage.of(kind, 0).pending > 0);
        let interval = self.configuration.interval.0;
        let has_requests = self.rounds.requested().next().is_some();
        self.next =
            (is_wanted || has_requests).then(|| Time((now.0 / interval + 1).saturating_mul(interval)));
    }

    pub fn save(&self) -> SavedWatch {
        SavedWatch { next: self.next, asked: self.rounds.requested().collect(), marks: self.marks.clone() }
    }

    pub fn restore(&mut self, saved: SavedWatch) {
        (self.next, self.marks) = (saved.next, saved.marks);
        for (attempt, since, wait) in saved.asked {
            self.rounds.restore(attempt, since, wait);
        }
    }

    /// Returns the attempts that a round over one slot kind chooses.
    fn round(&self, usage: &Usage, view: &ClusterView<'_>, kind: TaskKind) -> Vec<Candidate> {
        let slots = view.slots(kind);
        if slots == 0 || usage.of(kind, 0).pending == 0 {
            return Vec::new();
        }
        let tree = snapshot::tree(usage, kind, slots, &self.marks.of_queues(usage, kind));
        let settings = snapshot::settings(&self.configuration, usage, view, kind);
        let (marked, reservations) = (self.marks.attempts(), self.configuration.uses_reservations());
        let mut containers =
            snapshot::Containers { usage, view, kind, marked, reservations, attempts: Vec::new() };
        let outcome = Round::run(&tree, &settings, &mut |leaf| snapshot::applications(&mut containers, leaf));
        let attempts = containers.attempts;
        let mut beneficiaries =
            Beneficiaries::new(usage, *view, kind, &tree, &outcome.ideal, outcome.claims.clone());
        let mut chosen = Vec::new();
        for victim in &outcome.victims {
            let attempt = attempts[victim.container as usize];
            let waiting = victim.reservation.map(|container| attempts[container as usize].task.job);
            let wait = match victim.pass {
                Pass::Balance => self.configuration.balance_max_wait_before_kill,
                _ => self.configuration.max_wait_before_kill,
            };
            if view.request(attempt).is_some() {
                chosen.push(Candidate { attempt, wait, request: None });
                continue;
            }
            let beneficiary = match waiting {
                Some(job) => beneficiaries.for_reservation(job),
                None => beneficiaries.for_victim(victim, attempt.task.job),
            };
            if self.configuration.lazy {
                // The beneficiary is selected when the slot is needed.
                chosen.push(Candidate { attempt, wait, request: None });
            } else if let Some((job, queue)) = beneficiary {
                let request = Some((job, reason(&tree, victim, queue, kind)));
                chosen.push(Candidate { attempt, wait, request });
            }
        }
        chosen
    }

    /// Marks victims whose grace period is over (lazy mode).
    fn mark(&mut self, now: Time, view: &ClusterView<'_>, chosen: &[Candidate]) {
        let runs = |attempt| view.attempt(attempt).is_some_and(|known| known.holds_slot());
        let gone = self.rounds.requested().filter(|&(attempt, ..)| !runs(attempt));
        for (attempt, ..) in gone.collect::<Vec<_>>() {
            self.rounds.forget(attempt);
        }
        let (now_due, later): (Vec<&Candidate>, Vec<&Candidate>) =
            chosen.iter().partition(|one| self.configuration.mark_delay(one.wait) == Span(0));
        self.marks
            .add(now_due.into_iter().map(|one| one.attempt).filter(|_| !self.configuration.observe_only));
        let orders = self.rounds.act(now, later.into_iter().map(|one| (one.attempt, one.wait)));
        self.marks.add(orders.into_iter().filter_map(|order| match order {
            RoundOutcome::Request(_) => None,
            RoundOutcome::Kill(attempt) => Some(attempt),
        }));
    }

    /// Requests preemption of newly chosen attempts. Cancels requests that would end in a kill before the
    /// next round although this round did not choose the attempt.
    fn act(&mut self, now: Time, view: &ClusterView<'_>, chosen: Vec<Candidate>, actions: &mut Actions) {
        if self.configuration.lazy {
            return self.mark(now, view, &chosen);
        }
        let gone = self.rounds.requested().filter(|&(attempt, ..)| view.request(attempt).is_none());
        for (attempt, ..) in gone.collect::<Vec<_>>() {
            self.rounds.forget(attempt);
        }
        let again: BTreeSet<AttemptId> = chosen.iter().map(|one| one.attempt).collect();
        let horizon = now + self.configuration.interval;
        let kinds = actions.kinds();
        let unwanted = self.rounds.requested().filter(|&(attempt, since, wait)| {
            kinds.contains(&attempt.task.kind) && !again.contains(&attempt) && since + wait <= horizon
        });
        for (attempt, ..) in unwanted.collect::<Vec<_>>() {
            actions.cancel(attempt);
            self.rounds.forget(attempt);
        }
        let orders = self.rounds.act(now, chosen.iter().map(|one| (one.attempt, one.wait)));
        let requested: BTreeSet<AttemptId> = orders
            .into_iter()
            .filter_map(|order| match order {
                RoundOutcome::Request(attempt) => Some(attempt),
                // The engine kills the attempt when the grace period of the request ends.
                RoundOutcome::Kill(_) => None,
            })
            .collect();
        for Candidate { attempt, wait, request } in chosen {
            if let Some((job, reason)) = request
                && requested.contains(&attempt)
            {
                actions.preempt(Preempt {
                    attempt,
                    primitive: self.configuration.primitive,
                    grace: Some(wait),
                    reason,
                    beneficiary: Some(job),
                });
            }
        }
    }
}

/// Returns the reason of a preemption, for people.
pub(super) fn reason(tree: &QueueTree, victim: &Victim, beneficiary: usize, kind: TaskKind) -> String {
    let has = |number: usize| {
        let queue = tree.queue(number);
        let guaranteed = queue.guaranteed.to_f64();
        format!("queue {} has {} {kind} slots of {guaranteed:.1} guaranteed", queue.name, queue.used)
    };
    match victim.pass {
        Pass::IntraQueue => format!("{}, and another of its jobs is due more of them", has(beneficiary)),
        Pass::Balance => format!("{}, {}; balancing the excess", has(victim.queue), has(beneficiary)),
        Pass::Priority | Pass::Reserved => {
            format!(
                "{}, {}, and a suspended attempt of it waits for the slot",
                has(victim.queue),
                has(beneficiary)
            )
        }
        Pass::Guarantee => format!("{}, {}", has(victim.queue), has(beneficiary)),
    }
}
