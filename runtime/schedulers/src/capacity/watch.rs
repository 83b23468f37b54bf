//! The monitor at work on the cluster: it runs from time to time while somebody wants more than there is
//! free, asks attempts to go, and withdraws what a later round does not want any more.
//!
//! Owns when it runs and what it says of its reasons. Does not own how victims are chosen, nor how a slot is
//! taken.

use std::collections::BTreeSet;

use napreduce_engine::{Actions, AttemptId, ClusterView, JobId, Preempt, Span, TaskKind, Time};
use serde::{Deserialize, Serialize};

use super::beneficiaries::Beneficiaries;
use super::books::Books;
use super::configuration::MonitorConfiguration;
use super::marks::Marks;
use super::monitor::{Pass, QueueTree, Round, RoundOutcome, Rounds, Victim};
use super::snapshot;

/// The monitor with what it remembers.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    configuration: MonitorConfiguration,
    next: Option<Time>,
    rounds: Rounds<AttemptId>,
    marks: Marks,
}

/// What it remembers, as it is saved.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Remembered {
    next: Option<Time>,
    asked: Vec<(AttemptId, Time, Span)>,
    #[serde(default)]
    marks: Marks,
}

/// An attempt that a round chose.
struct Chosen {
    attempt: AttemptId,
    wait: Span,
    /// Who gets its slot and why; for one that was asked already that is settled.
    news: Option<(JobId, String)>,
}

impl Watch {
    /// One that has not run yet. The configuration was checked.
    pub fn new(configuration: MonitorConfiguration) -> Watch {
        let rounds = Rounds::new(configuration.observe_only);
        Watch { configuration, next: None, rounds, marks: Marks::default() }
    }

    /// When it runs next, if it has a reason to.
    pub fn next_wakeup(&self, now: Time) -> Option<Time> {
        self.next.filter(|&at| at > now)
    }

    /// Runs a round of each kind if it is time, and takes what is marked and needed now.
    pub fn run(&mut self, now: Time, books: &Books, view: &ClusterView<'_>, actions: &mut Actions) {
        self.run_if_due(now, books, view, actions);
        for &kind in actions.kinds() {
            self.marks.give_up(&self.configuration, books, view, kind, actions);
        }
    }

    fn run_if_due(&mut self, now: Time, books: &Books, view: &ClusterView<'_>, actions: &mut Actions) {
        let kinds = actions.kinds();
        if self.next.is_some_and(|at| at > now) {
            return;
        }
        if self.next.is_some() {
            let chosen = kinds.iter().flat_map(|&kind| self.round(books, view, kind)).collect();
            self.act(now, view, chosen, actions);
        }
        let is_wanted = kinds.iter().any(|&kind| books.of(kind, 0).pending > 0);
        let interval = self.configuration.interval.0;
        let has_asked = self.rounds.asked().next().is_some();
        self.next = (is_wanted || has_asked).then(|| Time((now.0 / interval + 1).saturating_mul(interval)));
    }

    pub fn remembered(&self) -> Remembered {
        Remembered { next: self.next, asked: self.rounds.asked().collect(), marks: self.marks.clone() }
    }

    /// Goes on from there.
    pub fn recall(&mut self, remembered: Remembered) {
        (self.next, self.marks) = (remembered.next, remembered.marks);
        for (attempt, since, wait) in remembered.asked {
            self.rounds.remember(attempt, since, wait);
        }
    }

    /// Whom a round over one kind of slot chooses.
    fn round(&self, books: &Books, view: &ClusterView<'_>, kind: TaskKind) -> Vec<Chosen> {
        let slots = view.slots(kind);
        if slots == 0 || books.of(kind, 0).pending == 0 {
            return Vec::new();
        }
        let tree = snapshot::tree(books, kind, slots, &self.marks.of_queues(books, kind));
        let settings = snapshot::settings(&self.configuration, books, view, kind);
        let (marked, reservations) = (self.marks.attempts(), self.configuration.sees_reservations());
        let mut containers =
            snapshot::Containers { books, view, kind, marked, reservations, attempts: Vec::new() };
        let outcome = Round::run(&tree, &settings, &mut |leaf| snapshot::applications(&mut containers, leaf));
        let attempts = containers.attempts;
        let mut beneficiaries =
            Beneficiaries::of(books, *view, kind, &tree, &outcome.ideal, outcome.claims.clone());
        let mut chosen = Vec::new();
        for victim in &outcome.victims {
            let attempt = attempts[victim.container as usize];
            let waiting = victim.reservation.map(|container| attempts[container as usize].task.job);
            let wait = match victim.pass {
                Pass::Balance => self.configuration.balance_max_wait_before_kill,
                _ => self.configuration.max_wait_before_kill,
            };
            if view.request(attempt).is_some() {
                chosen.push(Chosen { attempt, wait, news: None });
                continue;
            }
            let taker = match waiting {
                Some(job) => beneficiaries.waiting(job),
                None => beneficiaries.next(victim, attempt.task.job),
            };
            if self.configuration.lazy {
                // For whom is settled when somebody needs it.
                chosen.push(Chosen { attempt, wait, news: None });
            } else if let Some((job, queue)) = taker {
                let news = Some((job, reason(&tree, victim, queue, kind)));
                chosen.push(Chosen { attempt, wait, news });
            }
        }
        chosen
    }

    /// Marks those whose wait is over, where victims are only marked.
    fn mark(&mut self, now: Time, view: &ClusterView<'_>, chosen: &[Chosen]) {
        let runs = |attempt| view.attempt(attempt).is_some_and(|known| known.holds_slot());
        let gone = self.rounds.asked().filter(|&(attempt, ..)| !runs(attempt));
        for (attempt, ..) in gone.collect::<Vec<_>>() {
            self.rounds.forget(attempt);
        }
        let (now_due, later): (Vec<&Chosen>, Vec<&Chosen>) =
            chosen.iter().partition(|one| self.configuration.wait_for_mark(one.wait) == Span(0));
        self.marks
            .add(now_due.into_iter().map(|one| one.attempt).filter(|_| !self.configuration.observe_only));
        let orders = self.rounds.act(now, later.into_iter().map(|one| (one.attempt, one.wait)));
        self.marks.add(orders.into_iter().filter_map(|order| match order {
            RoundOutcome::Ask(_) => None,
            RoundOutcome::Kill(attempt) => Some(attempt),
        }));
    }

    /// Asks those that are chosen for the first time, and withdraws requests that would end in a kill before
    /// the next round though this one did not choose their victims.
    fn act(&mut self, now: Time, view: &ClusterView<'_>, chosen: Vec<Chosen>, actions: &mut Actions) {
        if self.configuration.lazy {
            return self.mark(now, view, &chosen);
        }
        let gone = self.rounds.asked().filter(|&(attempt, ..)| view.request(attempt).is_none());
        for (attempt, ..) in gone.collect::<Vec<_>>() {
            self.rounds.forget(attempt);
        }
        let again: BTreeSet<AttemptId> = chosen.iter().map(|one| one.attempt).collect();
        let horizon = now + self.configuration.interval;
        let kinds = actions.kinds();
        let unwanted = self.rounds.asked().filter(|&(attempt, since, wait)| {
            kinds.contains(&attempt.task.kind) && !again.contains(&attempt) && since + wait <= horizon
        });
        for (attempt, ..) in unwanted.collect::<Vec<_>>() {
            actions.cancel(attempt);
            self.rounds.forget(attempt);
        }
        let asked = self.rounds.act(now, chosen.iter().map(|one| (one.attempt, one.wait)));
        let asked: BTreeSet<AttemptId> = asked
            .into_iter()
            .filter_map(|order| match order {
                RoundOutcome::Ask(attempt) => Some(attempt),
                // The engine does that by itself: the wait is the grace of the request.
                RoundOutcome::Kill(_) => None,
            })
            .collect();
        for Chosen { attempt, wait, news } in chosen {
            if let Some((job, reason)) = news
                && asked.contains(&attempt)
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

/// Why a victim is taken, for people.
pub(super) fn reason(tree: &QueueTree, victim: &Victim, taker: usize, kind: TaskKind) -> String {
    let has = |number: usize| {
        let queue = tree.queue(number);
        let guaranteed = queue.guaranteed.to_f64();
        format!("queue {} has {} {kind} slots of {guaranteed:.1} guaranteed", queue.name, queue.used)
    };
    match victim.pass {
        Pass::IntraQueue => format!("{}, and another of its jobs is due more of them", has(taker)),
        Pass::Balance => format!("{}, {}; beyond that they are to share", has(victim.queue), has(taker)),
        Pass::Priority | Pass::Reserved => {
            format!("{}, {}, and an attempt of it waits there for a slot", has(victim.queue), has(taker))
        }
        Pass::Guarantee => format!("{}, {}", has(victim.queue), has(taker)),
    }
}
