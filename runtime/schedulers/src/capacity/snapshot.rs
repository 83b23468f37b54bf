//! Translates the cluster view for the monitor: queues hold slots of one kind, jobs become applications, and
//! attempts that hold a slot become containers of size one.

use napreduce_engine::{
    AttemptId, AttemptState, ClusterView, Job, Ratio, SortedSet, TaskKind, Time, sort_by_key,
};

use super::configuration::MonitorConfiguration;
use super::monitor::{
    Application, Arithmetic, Container, IntraQueue, Node, QueueSettings, QueueState, QueueTree,
    RoundSettings,
};
use super::usage::Usage;

/// Builds the queue tree; `marked` is the number of marked slots per queue, including those below.
pub(super) fn tree(usage: &Usage, kind: TaskKind, slots: u32, marked: &[u64]) -> QueueTree {
    let state = |number: usize| {
        let queue = usage.queues.queue(number);
        let most = Ratio::whole(u64::from(slots));
        let whole = Ratio::whole(u64::from(usage.queues.maximum(number, slots)));
        QueueState {
            name: queue.name.clone(),
            parent: queue.parent,
            guaranteed: usage.queues.guaranteed(number, slots),
            maximum: if queue.maximum >= Ratio::ONE {
                most
            } else {
                whole
            },
            used: u64::from(usage.of(kind, number).used),
            reserved: 0,
            killable: marked.get(number).copied().unwrap_or_default(),
            pending: if queue.children.is_empty() {
                usage.pending(kind, number, slots)
            } else {
                0
            },
            priority: queue.priority,
            preemption_disabled: queue.preemption_disabled,
        }
    };
    QueueTree::new((0..usage.queues.all().len()).map(state).collect())
}

/// Builds the settings of a round.
pub(super) fn settings(
    configuration: &MonitorConfiguration,
    usage: &Usage,
    view: &ClusterView<'_>,
    kind: TaskKind,
) -> RoundSettings {
    let slots = view.slots(kind);
    RoundSettings {
        arithmetic: Arithmetic::WholeSlots,
        cluster: u64::from(slots),
        total_per_round: configuration.total_per_round,
        dead_zone: configuration.dead_zone,
        natural_termination_factor: configuration.natural_termination_factor,
        least: u64::from(configuration.least_slots),
        masters_kept: Ratio::ZERO,
        balance_beyond_guaranteed: configuration.balance_beyond_guaranteed,
        // A suspended attempt holds no slot, so preempting it would free nothing.
        reserved_hold_room: false,
        reserved_aware: configuration.reserved_aware,
        priority_delay: configuration
            .priority_aware
            .then_some(configuration.priority_delay),
        intra_queue: configuration.intra_queue.then_some(IntraQueue {
            order: configuration.intra_queue_order,
            minimum_threshold: configuration.intra_queue_minimum_threshold,
            max_allowable_limit: configuration.intra_queue_max_allowable_limit,
            minimum_allocation: 1,
        }),
        queues: (0..usage.queues.all().len())
            .map(|queue| queue_settings(usage, kind, queue))
            .collect(),
        nodes: if configuration.uses_reservations() {
            nodes(view, kind)
        } else {
            Vec::new()
        },
        now: view.now(),
    }
}

fn nodes(view: &ClusterView<'_>, kind: TaskKind) -> Vec<Node> {
    view.free(kind)
        .map(|(worker, free)| Node {
            id: worker.0,
            free: u64::from(free),
        })
        .collect()
}

/// Returns the settings of one queue. The user limit equals that of the assignment: with a lower one, a
/// preempted slot would return to the same user and be preempted again.
fn queue_settings(usage: &Usage, kind: TaskKind, number: usize) -> QueueSettings {
    let queue = usage.queues.queue(number);
    let users = usage.leaf(kind, number).users.len().max(1);
    let equal = Ratio::whole(100) / Ratio::whole(users as u64);
    let minimum_user_limit_percent = Some(queue.user_limit_percent.max(equal));
    QueueSettings {
        order: queue.order,
        minimum_user_limit_percent,
    }
}

/// The source of applications for a round, and the attempts behind their containers.
pub(super) struct Containers<'a> {
    pub usage: &'a Usage,
    pub view: &'a ClusterView<'a>,
    pub kind: TaskKind,
    /// Marked attempts.
    pub marked: &'a SortedSet<AttemptId>,
    /// Whether suspended attempts are included, as reservations on their nodes.
    pub reservations: bool,
    /// By container number.
    pub attempts: Vec<AttemptId>,
}

/// Returns the jobs of a leaf as applications.
pub(super) fn applications(containers: &mut Containers<'_>, leaf: usize) -> Vec<Application> {
    let usage = containers.usage;
    let view = containers.view;
    let kind = containers.kind;
    let mut jobs: Vec<&Job> = usage
        .leaf(kind, leaf)
        .jobs
        .iter()
        .filter_map(|&job| view.job(job))
        .collect();
    sort_by_key(&mut jobs, |job| (job.submitted(), job.id()));
    // Reservations count only below the queue's guarantee; beyond it, suspended work waits for slots that
    // become free.
    let sums = usage.of(kind, leaf);
    let slots = view.slots(kind);
    let is_due = Ratio::whole(u64::from(sums.used) + u64::from(sums.promised))
        < usage.queues.guaranteed(leaf, slots);
    let application = |(age, job): (u64, &Job)| {
        let first = containers.attempts.len();
        containers.attempts.extend(
            job.attempts_of_kind(kind)
                .filter(|&id| holds_slot(view, id)),
        );
        let waiting = containers.attempts.len();
        if containers.reservations && is_due {
            containers.attempts.extend(
                job.attempts_of_kind(kind)
                    .filter(|&id| waits_for_worker(view, id)),
            );
        }
        let shown = |from: usize, to: usize| (from as u64..).zip(&containers.attempts[from..to]);
        let container = |(id, &attempt): (u64, &AttemptId)| {
            let known = container(view, id, attempt);
            Container {
                is_killable: known.is_killable || containers.marked.contains(&attempt),
                ..known
            }
        };
        let reservation = |(id, &attempt): (u64, &AttemptId)| reservation(view, id, attempt);
        Application {
            id: u64::from(job.id().0),
            user: job.spec().user.clone(),
            priority: job.spec().priority,
            age,
            pending: u64::from(job.demand(kind) - job.holding(kind)),
            reserved: shown(waiting, containers.attempts.len())
                .map(reservation)
                .collect(),
            live: shown(first, waiting).map(container).collect(),
        }
    };
    (0..).zip(jobs).map(application).collect()
}

/// Whether an attempt holds a preemptable slot. Masters are exempt.
fn holds_slot(view: &ClusterView<'_>, attempt: AttemptId) -> bool {
    let is_master = || view.job(attempt.task.job).is_some_and(Job::is_master);
    view.attempt(attempt)
        .is_some_and(|known| known.holds_slot())
        && !is_master()
}

/// Whether an attempt is suspended and can resume only on its worker.
fn waits_for_worker(view: &ClusterView<'_>, attempt: AttemptId) -> bool {
    view.attempt(attempt).is_some_and(|known| {
        known.state() == AttemptState::Suspended
            && !known.is_held()
            && view
                .job(attempt.task.job)
                .is_some_and(|job| job.pause().is_none())
    })
}

/// Returns a suspended attempt as a reservation on its worker.
fn reservation(view: &ClusterView<'_>, id: u64, attempt: AttemptId) -> Container {
    let known = view.attempt(attempt);
    let since = known
        .and_then(|known| known.suspension())
        .map_or(Time::default(), |suspension| suspension.since);
    Container {
        since,
        ..container(view, id, attempt)
    }
}

/// Returns an attempt as a container. A pending preemption makes it the first choice within its job; an
/// attempt that is being killed for another reason is killable.
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
