//! A worker daemon: it carries out each order once, supervises processes and holds map output.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use napreduce_engine::delivery::{Inbox, Outbox, Receipt};
use napreduce_engine::{AttemptId, JobSpec, Order, Report, Slots, TaskKind, WorkerId};
use rand::Rng;
use rand_pcg::Pcg32;

use crate::model::network::ToWorker;
use crate::model::process::{Process, Surroundings};

#[derive(Debug)]
pub struct Worker {
    pub id: WorkerId,
    pub slots: Slots,
    pub inbox: Inbox,
    pub outbox: Outbox<(AttemptId, Report)>,
    processes: BTreeMap<AttemptId, Process>,
    /// Map outputs, which this worker serves to reduces.
    pub held: BTreeSet<AttemptId>,
    /// Outputs that are being copied to storage that outlives the worker.
    moving: VecDeque<AttemptId>,
    /// All processed messages, in order.
    pub obeyed: Vec<ToWorker>,
    pub left: bool,
}

impl Worker {
    pub fn new(id: WorkerId, slots: Slots) -> Worker {
        Worker {
            id,
            slots,
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            processes: BTreeMap::new(),
            held: BTreeSet::new(),
            moving: VecDeque::new(),
            obeyed: Vec::new(),
            left: false,
        }
    }

    pub fn attempts(&self) -> impl Iterator<Item = AttemptId> + '_ {
        self.processes.keys().copied()
    }

    /// Receives a message of the coordinator.
    pub fn receive(
        &mut self,
        rng: &mut Pcg32,
        number: u64,
        message: ToWorker,
        spec: &JobSpec,
    ) -> Receipt {
        let arrival = self.inbox.accept(number);
        if arrival == Receipt::Fresh {
            self.obeyed.push(message.clone());
            match message {
                ToWorker::Obey(order) => self.obey(rng, order, spec),
                ToWorker::Leave => {
                    assert!(
                        self.processes.is_empty(),
                        "{} may leave, but runs something",
                        self.id
                    );
                    self.left = true;
                }
            }
        }
        arrival
    }

    fn obey(&mut self, rng: &mut Pcg32, order: Order, spec: &JobSpec) {
        match order {
            Order::Launch {
                attempt, inputs, ..
            } => {
                let commits = attempt.task.kind == TaskKind::Reduce || spec.reduces == 0;
                // Some attempts take much longer than others and receive duplicates.
                let steps = if rng.random_bool(0.15) {
                    60
                } else {
                    rng.random_range(0..5)
                };
                let process =
                    Process::new(attempt, &inputs, commits, spec.maps.len() as u32, steps);
                let twice = self.processes.insert(attempt, process).is_some();
                assert!(!twice, "{attempt} is launched twice");
                let kind = attempt.task.kind;
                let count = self.attempts().filter(|one| one.task.kind == kind).count();
                let slots = if kind == TaskKind::Map {
                    self.slots.map
                } else {
                    self.slots.reduce
                };
                assert!(
                    count <= slots as usize,
                    "{attempt} is process {count} in {slots} {kind} slots"
                );
            }
            Order::MoreInputs { attempt, inputs } => {
                self.tell(attempt, |process| process.feed(&inputs))
            }
            Order::Kill { attempt } => self.tell(attempt, Process::kill),
            Order::Commit { attempt } => self.tell(attempt, Process::grant),
            // A worker that is about to end may save its attempts.
            Order::Checkpoint { attempt } => self.tell(attempt, Process::save),
            Order::MoveOutput { attempt } => self.moving.push_back(attempt),
            other => panic!(
                "FIFO preempts nobody, and so has no reason to {}",
                other.verb()
            ),
        }
    }

    /// Changes a process; ignores an order for an exited process, which crossed its last report.
    fn tell(&mut self, attempt: AttemptId, change: impl FnOnce(&mut Process)) {
        if let Some(process) = self.processes.get_mut(&attempt) {
            change(process);
        }
    }

    /// Advances one process by one step, or copies one output. Returns the number of the report, if any.
    pub fn step(&mut self, rng: &mut Pcg32, world: &mut dyn Surroundings) -> Option<u64> {
        if rng.random_bool(0.8)
            && let Some(attempt) = self.moving.pop_front()
        {
            world.outlive(attempt);
            return Some(self.outbox.push((attempt, Report::OutputMoved)));
        }
        if self.processes.is_empty() {
            return None;
        }
        let chosen = rng.random_range(0..self.processes.len());
        let (&attempt, process) = self.processes.iter_mut().nth(chosen)?;
        let (stays, report) = process.step(rng, world);
        if !stays {
            self.processes.remove(&attempt);
        }
        let report = report?;
        if matches!(report, Report::Done { .. }) && attempt.task.kind == TaskKind::Map {
            self.held.insert(attempt);
        }
        Some(self.outbox.push((attempt, report)))
    }
}
