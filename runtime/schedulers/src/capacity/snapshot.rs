//! The cluster as the monitor sees it: queues as amounts of slots of one kind, jobs as applications, attempts
//! that hold a slot as containers of size one.
//!
//! Owns that translation. Does not own what the monitor makes of it.

use std::collections::BTreeSet;

use napreduce_engine::{AttemptId, AttemptState, ClusterView, Job, Ratio, TaskKind, Time};

use super::books::Books;
use super::configuration::MonitorConfiguration;
use super::monitor::{
    Application, Container, IntraQueue, Node, QueueSettings, QueueState, QueueTree, RoundSettings,
};

/// The queues; `marked` is how many slots of each, and of those below it, go when somebody needs them.
pub(super) fn tree(books: &Books, kind: TaskKind, slots: u32, marked: &[u64]) -> QueueTree {
    let state = |number: usize| {
        let queue = books.queues.queue(number);
        let most = Ratio::whole(u64::from(slots));
        let whole = Ratio::whole(u64::from(books.queues.maximum(number, slots)));
        QueueState {
            name: queue.name.clone(),
            parent: queue.parent,
            guaranteed: books.queues.guaranteed(number, slots),
            maximum: if queue.maximum >= Ratio::ONE { most } else { whole },
            used: u64::from(books.of(kind, number).used),
            reserved: 0,
            killable: marked.get(number).copied().unwrap_or_default(),
            pending: if queue.children.is_empty() { books.pending(kind, number, slots) } else { 0 },
            priority: queue.priority,
            preemption_disabled: queue.preemption_disabled,
        }
    };
    QueueTree::new((0..books.queues.all().len()).map(state).collect())
}

/// The settings of a round.
pub(super) fn settings(
    configuration: &MonitorConfiguration,
    books: &Books,
    view: &ClusterView<'_>,
    kind: TaskKind,
) -> RoundSettings {
    let slots = view.slots(kind);
    RoundSettings {
        cluster: u64::from(slots),
        total_per_round: configuration.total_per_round,
        dead_zone: configuration.dead_zone,
        natural_termination_factor: configuration.natural_termination_factor,
        least: u64::from(configuration.least_slots),
        masters_kept: Ratio::ZERO,
        balance_beyond_guaranteed: configuration.balance_beyond_guaranteed,
        // A suspended attempt holds no slot: giving it up would free nothing.
        reserved_hold_room: false,
        reserved_aware: configuration.reserved_aware,
        priority_delay: configuration.priority_aware.then_some(configuration.priority_delay),
        intra_queue: configuration.intra_queue.then_some(IntraQueue {
            order: configuration.intra_queue_order,
            minimum_threshold: configuration.intra_queue_minimum_threshold,
            max_allowable_limit: configuration.intra_queue_max_allowable_limit,
            minimum_allocation: 1,
        }),
        queues: (0..books.queues.all().len()).map(|queue| queue_settings(books, kind, queue)).collect(),
        nodes: if configuration.sees_reservations() { nodes(view, kind) } else { Vec::new() },
        now: view.now(),
    }
}

fn nodes(view: &ClusterView<'_>, kind: TaskKind) -> Vec<Node> {
    view.free(kind).map(|(worker, free)| Node { id: worker.0, free: u64::from(free) }).collect()
}

/// The settings of one queue. A user has the limit that the assignment keeps to: if it were lower here, what
/// is taken from a user for another would go back to the first with the next slot, and be taken again.
fn queue_settings(books: &Books, kind: TaskKind, number: usize) -> QueueSettings {
    let queue = books.queues.queue(number);
    let users = books.leaf(kind, number).users.len().max(1);
    let equal = Ratio::whole(100) / Ratio::whole(users as u64);
    let minimum_user_limit_percent = Some(queue.user_limit_percent.max(equal));
    QueueSettings { order: queue.order, minimum_user_limit_percent }
}

/// What a round looks at, and the attempts that stand behind the containers it is shown.
pub(super) struct Containers<'a> {
    pub books: &'a Books,
    pub view: &'a ClusterView<'a>,
    pub kind: TaskKind,
    /// Those that go when somebody needs their slots.
    pub marked: &'a BTreeSet<AttemptId>,
    /// Suspended attempts are shown, as what waits for room on its node.
    pub reservations: bool,
    /// By the numbers of the containers.
    pub attempts: Vec<AttemptId>,
}

/// The jobs of one leaf.
pub(super) fn applications(of: &mut Containers<'_>, leaf: usize) -> Vec<Application> {
    let (books, view, kind) = (of.books, of.view, of.kind);
    let mut jobs: Vec<&Job> = books.leaf(kind, leaf).jobs.iter().filter_map(|&job| view.job(job)).collect();
    jobs.sort_by_key(|job| (job.submitted(), job.id()));
    // Room is made for what a queue is due; beyond that its suspended work waits for slots that come free.
    let (sums, slots) = (books.of(kind, leaf), view.slots(kind));
    let is_due =
        Ratio::whole(u64::from(sums.used) + u64::from(sums.promised)) < books.queues.guaranteed(leaf, slots);
    let application = |(age, job): (u64, &Job)| {
        let first = of.attempts.len();
        of.attempts.extend(job.attempts_of_kind(kind).filter(|&id| holds_slot(view, id)));
        let waiting = of.attempts.len();
        if of.reservations && is_due {
            of.attempts.extend(job.attempts_of_kind(kind).filter(|&id| waits_for_its_worker(view, id)));
        }
        let shown = |from: usize, to: usize| (from as u64..).zip(&of.attempts[from..to]);
        let container = |(id, &attempt): (u64, &AttemptId)| {
            let known = container(view, id, attempt);
            Container { is_killable: known.is_killable || of.marked.contains(&attempt), ..known }
        };
        let reservation = |(id, &attempt): (u64, &AttemptId)| reservation(view, id, attempt);
        Application {
            id: u64::from(job.id().0),
            user: job.spec().user.clone(),
            priority: job.spec().priority,
            age,
            pending: u64::from(job.demand(kind) - job.holding(kind)),
            reserved: shown(waiting, of.attempts.len()).map(reservation).collect(),
            live: shown(first, waiting).map(container).collect(),
        }
    };
    (0..).zip(jobs).map(application).collect()
}

/// Whether an attempt holds a slot that can be taken; that of a master cannot.
fn holds_slot(view: &ClusterView<'_>, attempt: AttemptId) -> bool {
    let is_master = || view.job(attempt.task.job).is_some_and(Job::is_master);
    view.attempt(attempt).is_some_and(|known| known.holds_slot()) && !is_master()
}

/// Whether an attempt is suspended and would go on with a slot of its worker, and with no other.
fn waits_for_its_worker(view: &ClusterView<'_>, attempt: AttemptId) -> bool {
    view.attempt(attempt).is_some_and(|known| {
        known.state() == AttemptState::Suspended
            && !known.is_held()
            && view.job(attempt.task.job).is_some_and(|job| job.held().is_none())
    })
}

/// A suspended attempt: it has no slot and fits nowhere but on its worker, as what is reserved on a node.
fn reservation(view: &ClusterView<'_>, id: u64, attempt: AttemptId) -> Container {
    let known = view.attempt(attempt);
    let since =
        known.and_then(|known| known.suspension()).map_or(Time::default(), |suspension| suspension.since);
    Container { since, ..container(view, id, attempt) }
}

/// An attempt that is to give its slot already is chosen again before any other of its job; one that is being
/// killed for another reason is not there any more.
fn container(view: &ClusterView<'_>, id: u64, attempt: AttemptId) -> Container {
    let is_asked = view.request(attempt).is_some();
    let known = view.attempt(attempt);
    Container {
        id,
        size: 1,
        importance: if is_asked { 2 } else { 1 },
        since: known.map_or(Time::default(), |known| known.launched()),
        node: known.map(|known| known.worker().0),
        is_master: false,
        is_killable: !is_asked && known.is_none_or(|known| known.state() == AttemptState::Killing),
    }
}
