//! The cluster as the monitor sees it: queues as amounts of slots of one kind, jobs as applications, attempts
//! that hold a slot as containers of size one.
//!
//! Owns that translation. Does not own what the monitor makes of it.

use napreduce_core::{AttemptId, AttemptState, ClusterView, Job, Ratio, TaskKind, Time};

use super::books::Books;
use super::configuration::MonitorConfiguration;
use super::monitor::{
    Application, Container, IntraQueue, QueueSettings, QueueState, QueueTree, RoundSettings,
};

pub(super) fn tree(books: &Books, kind: TaskKind, slots: u32) -> QueueTree {
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
            killable: 0,
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
    kind: TaskKind,
    slots: u32,
    now: Time,
) -> RoundSettings {
    RoundSettings {
        cluster: u64::from(slots),
        total_per_round: configuration.total_per_round,
        dead_zone: configuration.dead_zone,
        natural_termination_factor: configuration.natural_termination_factor,
        least: u64::from(configuration.least_slots),
        masters_kept: Ratio::ZERO,
        balance_beyond_guaranteed: configuration.balance_beyond_guaranteed,
        reserved_aware: false,
        priority_delay: None,
        intra_queue: configuration.intra_queue.then_some(IntraQueue {
            order: configuration.intra_queue_order,
            minimum_threshold: configuration.intra_queue_minimum_threshold,
            max_allowable_limit: configuration.intra_queue_max_allowable_limit,
            minimum_allocation: 1,
        }),
        queues: (0..books.queues.all().len()).map(|queue| queue_settings(books, kind, queue)).collect(),
        nodes: Vec::new(),
        now,
    }
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

/// The jobs of one leaf. Containers are numbered by their place in `attempts`, to which they are added.
pub(super) fn applications(
    books: &Books,
    view: &ClusterView<'_>,
    kind: TaskKind,
    leaf: usize,
    attempts: &mut Vec<AttemptId>,
) -> Vec<Application> {
    let mut jobs: Vec<&Job> = books.leaf(kind, leaf).jobs.iter().filter_map(|&job| view.job(job)).collect();
    jobs.sort_by_key(|job| (job.submitted(), job.id()));
    let application = |(age, job): (u64, &Job)| {
        let first = attempts.len();
        attempts.extend(job.attempts_of_kind(kind).filter(|&id| holds_slot(view, id)));
        let container = |(id, &attempt): (u64, &AttemptId)| container(view, id, attempt);
        Application {
            id: u64::from(job.id().0),
            user: job.spec().user.clone(),
            priority: job.spec().priority,
            age,
            pending: u64::from(job.demand(kind) - job.holding(kind)),
            reserved: Vec::new(),
            live: (first as u64..).zip(&attempts[first..]).map(container).collect(),
        }
    };
    (0..).zip(jobs).map(application).collect()
}

fn holds_slot(view: &ClusterView<'_>, attempt: AttemptId) -> bool {
    view.attempt(attempt).is_some_and(|known| known.holds_slot())
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
