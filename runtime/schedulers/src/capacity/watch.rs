//! Runs the preemption monitor periodically while demand exceeds free slots, requests preemptions, and
//! cancels requests that a later round does not confirm.

use napreduce_engine::{
    Actions, AttemptId, ClusterView, JobId, Preempt, Primitive, Ratio, SortedMap, SortedSet, Span,
    TaskId, TaskKind, Time, WorkerId,
};
use serde::{Deserialize, Serialize};

use super::beneficiaries::Beneficiaries;
use super::configuration::MonitorConfiguration;
use super::marks::Marks;
use super::monitor::{
    Application, Claim, Pass, QueueTree, Round, RoundOutcome, Rounds, Source, Victim,
};
use super::moves::{Move, unused_slots};
use super::snapshot::{self, Containers};
use super::usage::Usage;
use crate::serving::Delay;

/// The monitor and its state.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    configuration: MonitorConfiguration,
    next: Option<Time>,
    rounds: Rounds<AttemptId>,
    marks: Marks,
    recent: Recent,
}

/// What recent rounds did to jobs, so that the passes between queues and within a queue do not undo each
/// other.
#[derive(Debug, Clone, Default)]
struct Recent {
    /// When a job last lost a slot to another queue.
    lost: SortedMap<(JobId, TaskKind), Time>,
    /// When a job last received a slot of another job of its queue.
    received: SortedMap<(JobId, TaskKind), Time>,
}

/// The saved state.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedWatch {
    next: Option<Time>,
    asked: Vec<(AttemptId, Time, Span)>,
    #[serde(default)]
    marks: Marks,
    #[serde(default)]
    lost: Vec<(JobId, TaskKind, Time)>,
    #[serde(default)]
    received: Vec<(JobId, TaskKind, Time)>,
}

/// An attempt chosen by a round.
struct Candidate {
    attempt: AttemptId,
    wait: Span,
    pass: Pass,
    /// The beneficiary and the reason; `None` if preemption was already requested.
    request: Option<(JobId, String)>,
}

/// The cluster during a round over one slot kind.
struct Matching<'a> {
    configuration: &'a MonitorConfiguration,
    recent: &'a Recent,
    tree: &'a QueueTree,
    containers: Containers<'a>,
    beneficiaries: Beneficiaries<'a>,
    /// Counts from 0; see [`Source::sweeps`].
    sweep: usize,
    /// Queues and workers for which this pass found no beneficiary: there will be none later.
    refused: SortedSet<(usize, WorkerId)>,
    chosen: Vec<Candidate>,
}

impl Matching<'_> {
    /// Returns how long a victim may run before it is killed.
    fn wait(&self, pass: Pass) -> Span {
        match pass {
            Pass::Balance => self.configuration.balance_max_wait_before_kill,
            _ => self.configuration.max_wait_before_kill,
        }
    }

    /// Whether there may be a better victim: the worker cannot keep another suspended attempt, or the job
    /// just received the slot from another job of its queue.
    fn is_second_choice(&self, attempt: AttemptId, worker: WorkerId, pass: Pass) -> bool {
        let view = self.containers.view;
        let is_full = view.worker(worker).is_some_and(|worker| worker.is_full());
        let suspends = self.configuration.primitive == Primitive::Suspend;
        let received = self
            .recent
            .received
            .contains_key(&(attempt.task.job, attempt.task.kind));
        (suspends && is_full) || (received && pass != Pass::IntraQueue)
    }

    /// Returns the job that will use the slot of a victim on a worker, and its queue.
    fn beneficiary(
        &mut self,
        victim: &Victim,
        of: JobId,
        worker: WorkerId,
    ) -> Option<(JobId, usize)> {
        if let Some(container) = victim.reservation {
            let job = self.containers.attempts[container as usize].task.job;
            return self.beneficiaries.for_reservation(job, worker);
        }
        if victim.pass == Pass::IntraQueue {
            return self.beneficiaries.for_victim(victim, of, worker);
        }
        if self.refused.contains(&(victim.queue, worker)) {
            return None;
        }
        let found = self.beneficiaries.for_victim(victim, of, worker);
        if found.is_none() {
            self.refused.insert((victim.queue, worker));
        }
        found
    }
}

impl Source for Matching<'_> {
    fn applications(&mut self, leaf: usize) -> Vec<Application> {
        snapshot::applications(&mut self.containers, leaf)
    }

    fn begin_pass(&mut self, ideal: &[Ratio], claims: &[Claim], sweep: usize) {
        self.sweep = sweep;
        self.refused.clear();
        self.beneficiaries.begin_pass(ideal, claims, sweep > 0);
    }

    fn accepts(&mut self, victim: &Victim) -> bool {
        let attempt = self.containers.attempts[victim.container as usize];
        let view = self.containers.view;
        let Some(known) = view.attempt(attempt) else {
            return false;
        };
        let worker = known.worker();
        let wait = self.wait(victim.pass);
        let mut candidate = Candidate {
            attempt,
            wait,
            pass: victim.pass,
            request: None,
        };
        if view.request(attempt).is_some() {
            let is_useful = is_useful(view, attempt);
            if is_useful {
                self.chosen.push(candidate);
            }
            return is_useful;
        }
        if known.is_spared(view.now()) {
            return false;
        }
        if self.configuration.lazy {
            // The beneficiary is selected when the slot is needed.
            self.chosen.push(candidate);
            return true;
        }
        if self.sweep == 0 && self.is_second_choice(attempt, worker, victim.pass) {
            return false;
        }
        let Some((job, queue)) = self.beneficiary(victim, attempt.task.job, worker) else {
            return false;
        };
        candidate.request = Some((job, reason(self.tree, victim, queue, attempt.task.kind)));
        self.chosen.push(candidate);
        true
    }

    fn sweeps(&self) -> usize {
        2
    }

    fn may_take_within(&self, leaf: usize) -> bool {
        let Containers { usage, kind, .. } = &self.containers;
        let is_of_leaf =
            |(job, of): &(JobId, TaskKind)| of == kind && usage.leaf_of(*job) == Some(leaf);
        !self.recent.lost.keys().any(is_of_leaf)
    }
}

/// Whether the beneficiary of an open request can still use the slot.
fn is_useful(view: &ClusterView<'_>, attempt: AttemptId) -> bool {
    let Some(request) = view.request(attempt) else {
        return true;
    };
    let Some(known) = view.attempt(attempt) else {
        return false;
    };
    let worker = known.worker();
    let Some(job) = request.beneficiary else {
        return true;
    };
    let takes_attempts = view
        .worker(worker)
        .is_some_and(|worker| worker.takes_attempts());
    takes_attempts
        && view
            .job(job)
            .is_some_and(|job| job.wants_on(attempt.task.kind, worker))
}

impl Recent {
    /// Forgets what happened before a time.
    fn forget_before(&mut self, time: Time) {
        self.lost.retain(|_, at| *at >= time);
        self.received.retain(|_, at| *at >= time);
    }

    fn add(&mut self, now: Time, candidate: &Candidate, beneficiary: JobId) {
        let TaskId { job, kind, .. } = candidate.attempt.task;
        if candidate.pass == Pass::IntraQueue {
            self.received.insert((beneficiary, kind), now);
        } else {
            self.lost.insert((job, kind), now);
        }
    }
}

impl Watch {
    /// Creates the monitor from a checked configuration.
    pub fn new(configuration: MonitorConfiguration) -> Watch {
        let rounds = Rounds::new(configuration.observe_only);
        Watch {
            configuration,
            next: None,
            rounds,
            marks: Marks::default(),
            recent: Recent::default(),
        }
    }

    /// Returns the time of the next round, if one is due.
    pub fn next_wakeup(&self, now: Time) -> Option<Time> {
        self.next.filter(|&at| at > now)
    }

    /// Runs a round per kind if it is due, and preempts marked attempts whose slots are needed. `delay` is the
    /// delay scheduling of the policy.
    pub fn run(
        &mut self,
        now: Time,
        usage: &Usage,
        mut delay: Option<&mut Delay>,
        view: &ClusterView<'_>,
        actions: &mut Actions,
    ) {
        self.run_if_due(now, usage, delay.as_deref_mut(), view, actions);
        for &kind in actions.kinds() {
            let delay = delay.as_deref_mut();
            self.marks
                .preempt_needed(&self.configuration, usage, view, kind, delay, actions);
        }
    }

    fn run_if_due(
        &mut self,
        now: Time,
        usage: &Usage,
        mut delay: Option<&mut Delay>,
        view: &ClusterView<'_>,
        actions: &mut Actions,
    ) {
        let kinds = actions.kinds();
        if self.next.is_some_and(|at| at > now) {
            return;
        }
        if self.next.is_some() {
            self.recent.forget_before(now - self.configuration.memory());
            let mut chosen = Vec::new();
            for &kind in kinds {
                chosen.extend(self.round(usage, delay.as_deref_mut(), view, kind, actions));
            }
            self.act(now, view, chosen, actions);
        }
        let is_wanted = kinds.iter().any(|&kind| usage.of(kind, 0).pending > 0);
        let interval = self.configuration.interval.0;
        let has_requests = self.rounds.requested().next().is_some();
        self.next = (is_wanted || has_requests)
            .then(|| Time((now.0 / interval + 1).saturating_mul(interval)));
    }

    pub fn save(&self) -> SavedWatch {
        let listed = |jobs: &SortedMap<(JobId, TaskKind), Time>| {
            jobs.iter()
                .map(|((job, kind), at)| (*job, *kind, *at))
                .collect()
        };
        SavedWatch {
            next: self.next,
            asked: self.rounds.requested().collect(),
            marks: self.marks.clone(),
            lost: listed(&self.recent.lost),
            received: listed(&self.recent.received),
        }
    }

    pub fn restore(&mut self, saved: SavedWatch) {
        self.next = saved.next;
        self.marks = saved.marks;
        self.recent.lost = saved
            .lost
            .into_iter()
            .map(|(job, kind, at)| ((job, kind), at))
            .collect();
        self.recent.received = saved
            .received
            .into_iter()
            .map(|(job, kind, at)| ((job, kind), at))
            .collect();
        for (attempt, since, wait) in saved.asked {
            self.rounds.restore(attempt, since, wait);
        }
    }

    /// Returns the attempts that a round over one slot kind chooses, and moves suspended ones.
    fn round(
        &self,
        usage: &Usage,
        delay: Option<&mut Delay>,
        view: &ClusterView<'_>,
        kind: TaskKind,
        actions: &mut Actions,
    ) -> Vec<Candidate> {
        let slots = view.slots(kind);
        if slots == 0 || usage.of(kind, 0).pending == 0 {
            return Vec::new();
        }
        let tree = snapshot::tree(usage, kind, slots, &self.marks.of_queues(usage, kind));
        let settings = snapshot::settings(&self.configuration, usage, view, kind);
        let containers = Containers {
            usage,
            view,
            kind,
            marked: self.marks.attempts(),
            reservations: self.configuration.uses_reservations(),
            attempts: Vec::new(),
        };
        let mut matching = Matching {
            configuration: &self.configuration,
            recent: &self.recent,
            tree: &tree,
            containers,
            beneficiaries: Beneficiaries::new(usage, *view, &kind, &tree, delay),
            sweep: 0,
            refused: SortedSet::new(),
            chosen: Vec::new(),
        };
        let choice = Round::run_on(&tree, &settings, &mut matching);
        // Marks are counted as taken, but nobody has used these.
        let left = choice.untaken + tree.queue(0).killable + unused_slots(view, kind);
        self.move_suspended(view, &mut matching.beneficiaries, &tree, left, actions);
        matching.chosen
    }

    /// Moves suspended attempts of queues below their guarantee that cannot use any of the slots that others leave.
    fn move_suspended(
        &self,
        view: &ClusterView<'_>,
        beneficiaries: &mut Beneficiaries<'_>,
        tree: &QueueTree,
        left: u64,
        actions: &mut Actions,
    ) {
        let configuration = &self.configuration;
        if left == 0 || configuration.observe_only || configuration.primitive == Primitive::Wait {
            return;
        }
        let latest = view.now() - configuration.max_wait_before_kill;
        for Move { attempt, queue } in beneficiaries.moves(left, configuration.dead_zone, latest) {
            let standing = standing(tree, queue, attempt.task.kind);
            actions.preempt(Preempt {
                attempt,
                primitive: Primitive::Checkpoint,
                grace: None,
                reason: format!("{standing}, and slots of other workers are due to it"),
                beneficiary: None,
            });
        }
    }

    /// Marks victims whose grace period is over (lazy mode).
    fn mark(&mut self, now: Time, view: &ClusterView<'_>, chosen: &[Candidate]) {
        let runs = |attempt| {
            view.attempt(attempt)
                .is_some_and(|known| known.holds_slot())
        };
        let gone = self
            .rounds
            .requested()
            .filter(|&(attempt, ..)| !runs(attempt));
        for (attempt, ..) in gone.collect::<Vec<_>>() {
            self.rounds.forget(attempt);
        }
        let (now_due, later): (Vec<&Candidate>, Vec<&Candidate>) = chosen
            .iter()
            .partition(|one| self.configuration.mark_delay(one.wait) == Span(0));
        self.marks.add(
            now_due
                .into_iter()
                .map(|one| one.attempt)
                .filter(|_| !self.configuration.observe_only),
        );
        let orders = self
            .rounds
            .act(now, later.into_iter().map(|one| (one.attempt, one.wait)));
        self.marks
            .add(orders.into_iter().filter_map(|order| match order {
                RoundOutcome::Request(_) => None,
                RoundOutcome::Kill(attempt) => Some(attempt),
            }));
    }

    /// Requests preemption of newly chosen attempts. Cancels requests that would end in a kill before the
    /// next round although this round did not choose the attempt, or whose beneficiary cannot use the slot.
    fn act(
        &mut self,
        now: Time,
        view: &ClusterView<'_>,
        chosen: Vec<Candidate>,
        actions: &mut Actions,
    ) {
        if self.configuration.lazy {
            return self.mark(now, view, &chosen);
        }
        let gone = self
            .rounds
            .requested()
            .filter(|&(attempt, ..)| view.request(attempt).is_none());
        for (attempt, ..) in gone.collect::<Vec<_>>() {
            self.rounds.forget(attempt);
        }
        let again: SortedSet<AttemptId> = chosen.iter().map(|one| one.attempt).collect();
        let horizon = now + self.configuration.interval;
        let kinds = actions.kinds();
        let unwanted = self.rounds.requested().filter(|&(attempt, since, wait)| {
            let is_soon = since + wait <= horizon || !is_useful(view, attempt);
            kinds.contains(&attempt.task.kind) && !again.contains(&attempt) && is_soon
        });
        for (attempt, ..) in unwanted.collect::<Vec<_>>() {
            actions.cancel(attempt);
            self.rounds.forget(attempt);
        }
        let orders = self
            .rounds
            .act(now, chosen.iter().map(|one| (one.attempt, one.wait)));
        let requested: SortedSet<AttemptId> = orders
            .into_iter()
            .filter_map(|order| match order {
                RoundOutcome::Request(attempt) => Some(attempt),
                // The engine kills the attempt when the grace period of the request ends.
                RoundOutcome::Kill(_) => None,
            })
            .collect();
        for candidate in chosen {
            if let Some((job, reason)) = &candidate.request
                && requested.contains(&candidate.attempt)
            {
                self.recent.add(now, &candidate, *job);
                actions.preempt(Preempt {
                    attempt: candidate.attempt,
                    primitive: self.configuration.primitive,
                    grace: Some(candidate.wait),
                    reason: reason.clone(),
                    beneficiary: Some(*job),
                });
            }
        }
    }
}

/// Returns the reason of a preemption, for people.
pub(super) fn reason(
    tree: &QueueTree,
    victim: &Victim,
    beneficiary: usize,
    kind: TaskKind,
) -> String {
    let has = |number: usize| standing(tree, number, kind);
    match victim.pass {
        Pass::IntraQueue => format!(
            "{}, and another of its jobs is due more of them",
            has(beneficiary)
        ),
        Pass::Balance => format!(
            "{}, {}; balancing the excess",
            has(victim.queue),
            has(beneficiary)
        ),
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

/// Returns what a queue has, for people.
fn standing(tree: &QueueTree, number: usize, kind: TaskKind) -> String {
    let queue = tree.queue(number);
    let guaranteed = queue.guaranteed.to_f64();
    format!(
        "queue {} has {} {kind} slots of {guaranteed:.1} guaranteed",
        queue.name, queue.used
    )
}
