//! The live code notes here the situations that it reaches, and facts for the oracles of a simulation. Without the feature
//! `simulated`, the notes do nothing.

#[cfg(feature = "simulated")]
use std::cell::RefCell;
#[cfg(feature = "simulated")]
use std::rc::Rc;

use napreduce_engine::listed;
#[cfg(feature = "simulated")]
use napreduce_engine::{JobId, JobOutcome, WorkerId};
#[cfg(feature = "simulated")]
use napreduce_protocol::{ToWorker, WorkerReport};

listed! {
    /// A situation that some runs of a simulation must reach: defects that show only there are found only then.
    ///
    /// Not listed is what correct peers never cause: the engine suspends no attempt that has not started or may commit, and gives
    /// no order to an attempt that carries out another one; a worker repeats no report that its coordinator has. Nor is the
    /// repeated end of a job listed, for which its output's storage must fail; simulations have real directories.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Situation {
        SuspendedAtGate = "an attempt was suspended at its gate",
        SuspendedAtWork = "an attempt was suspended at work, because it did not come to its gate",
        StopRepeated = "a process did not stop at once and was stopped again",
        StopGivenUp = "a process never stopped, and its suspend was undone",
        DescendantRan = "a descendant did not stop, and the suspend was undone",
        ContinuedByOthers = "a suspended process was continued by others",
        InputsDeferred = "inputs were announced to a stopped reduce",
        CheckpointedRunning = "a running attempt was told to save its work",
        CheckpointedSuspended = "a suspended attempt was told to save its work",
        RestoreRefused = "a task could not restore its checkpoint",
        KilledWithoutProcess = "an attempt without a process was killed",
        KilledStarting = "a starting attempt was killed",
        KilledRunning = "a running attempt was killed",
        KilledSuspending = "an attempt was killed on its way to its gate",
        KilledStopping = "an attempt was killed while it was being stopped",
        KilledSuspended = "a suspended attempt was killed",
        KilledResuming = "a resuming attempt was killed",
        KilledCheckpointing = "an attempt was killed while it saved its work",
        DoneWhileKilled = "an attempt finished while it was being killed",
        CheckpointedWhileKilled = "a checkpoint was written while its attempt was being killed",
        HangEnded = "a hanging process was ended",
        ReportHeld = "a report waited for the check of an output directory",
        HeldReportsDropped = "held reports were dropped because their worker reconnected",
        ReportStale = "a report named an attempt that its worker does not have",
        OrdersRepeated = "orders were sent again after a reconnect",
        WorkerReconnected = "a worker reconnected",
        WorkerReplaced = "a later start of a worker replaced it",
        WorkerRefused = "a worker was refused because its name was in use",
        WorkerSilent = "a silent worker was declared lost",
        WorkerForgotten = "a worker learned that its coordinator has no record of it",
        WorkerSuperseded = "a worker with an identity got another one",
        WorkerLeft = "a drained worker was told that it may leave",
        LeaveUnanswered = "a worker left without an answer",
        CoordinatorPaused = "a coordinator noticed that it was paused",
        RecoveredFromSnapshot = "a coordinator recovered from a snapshot",
        RecoveredLaunching = "a coordinator recovered with a launching attempt",
        RecoveredRunning = "a coordinator recovered with a running attempt",
        RecoveredSuspending = "a coordinator recovered with an attempt that was being suspended",
        RecoveredSuspended = "a coordinator recovered with a suspended attempt",
        RecoveredResuming = "a coordinator recovered with a resuming attempt",
        RecoveredCheckpointing = "a coordinator recovered with an attempt that saved its work",
        RecoveredKilling = "a coordinator recovered with an attempt that was being killed",
        RecoveredGranted = "a coordinator recovered with a commit grant",
        RecoveredPaused = "a coordinator recovered with a paused job",
        RecoveredCommitting = "a coordinator recovered during the commit of a job",
        EndingWaited = "the end of a job waited for its claim",
        EndingKilled = "a job was killed while its output was settled",
        SubmissionRepeated = "a submission arrived again after its job was accepted",
        SubmissionJoined = "a submission arrived again while its output was claimed",
        ClaimRefused = "an output directory was refused because it is in use",
    }
}

/// Notes that the live code reached a situation.
#[cfg(feature = "simulated")]
pub fn reached(situation: Situation) {
    with_observer(|observer| observer.on_reached(situation));
}

/// Notes that the live code reached a situation; only a simulation counts it.
#[cfg(not(feature = "simulated"))]
pub fn reached(_: Situation) {}

/// A step of the live code for the oracles of a simulation.
#[cfg(feature = "simulated")]
#[derive(Debug)]
pub enum Fact<'a> {
    /// A coordinator begins to replay a journal.
    ReplayBegins,
    /// The state is that after the journal.
    ReplayEnds,
    /// A coordinator has decided an entry, which it must write.
    EntryDecided,
    /// All decided entries are in the journal.
    EntriesWritten,
    /// An effect of the entries leaves the coordinator.
    EffectReleased {
        /// The effect.
        what: &'static str,
    },
    /// A coordinator decided to send a message to a worker. A replay decides so again.
    OrderQueued {
        worker: WorkerId,
        message: &'a ToWorker,
    },
    /// A coordinator sends a numbered message to a worker, perhaps not for the first time.
    OrderSent {
        worker: WorkerId,
        message: &'a ToWorker,
    },
    /// A worker carries out a numbered message.
    OrderFollowed {
        worker: WorkerId,
        message: &'a ToWorker,
    },
    /// A worker makes a report.
    ReportMade {
        worker: WorkerId,
        number: u64,
        report: &'a WorkerReport,
    },
    /// A coordinator applies a report under this number.
    ReportApplied {
        worker: WorkerId,
        number: u64,
        report: &'a WorkerReport,
    },
    /// A worker of this name has joined.
    WorkerJoined { worker: WorkerId, name: &'a str },
    /// A worker has left or is lost. A replay decides so again.
    WorkerGone { worker: WorkerId },
    /// The outcome of a job is decided, and its output is to be settled.
    JobEnding {
        job: JobId,
        outcome: Option<&'a JobOutcome>,
    },
}

/// Gets what the live code notes.
#[cfg(feature = "simulated")]
pub trait Observer {
    /// Called when a situation is reached.
    fn on_reached(&self, situation: Situation);

    /// Called at a step.
    fn on_fact(&self, fact: &Fact<'_>);
}

#[cfg(feature = "simulated")]
thread_local! {
    static OBSERVER: RefCell<Option<Rc<dyn Observer>>> = const { RefCell::new(None) };
}

/// Observes the live code on this thread until it is dropped.
#[cfg(feature = "simulated")]
#[derive(Debug)]
pub struct Observing(());

#[cfg(feature = "simulated")]
impl Observing {
    /// Lets an observer get everything that the live code notes on this thread.
    #[must_use]
    pub fn begin(observer: Rc<dyn Observer>) -> Observing {
        OBSERVER.with_borrow_mut(|slot| *slot = Some(observer));
        Observing(())
    }
}

#[cfg(feature = "simulated")]
impl Drop for Observing {
    fn drop(&mut self) {
        OBSERVER.with_borrow_mut(|slot| *slot = None);
    }
}

/// Notes a step.
#[cfg(feature = "simulated")]
pub fn note(fact: &Fact<'_>) {
    with_observer(|observer| observer.on_fact(fact));
}

#[cfg(feature = "simulated")]
fn with_observer(call: impl FnOnce(&dyn Observer)) {
    let observer = OBSERVER.with_borrow(Clone::clone);
    if let Some(observer) = observer {
        call(&*observer);
    }
}

#[cfg(all(test, feature = "simulated"))]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counter {
        situations: RefCell<Vec<Situation>>,
        facts: RefCell<Vec<String>>,
    }

    impl Observer for Counter {
        fn on_reached(&self, situation: Situation) {
            self.situations.borrow_mut().push(situation);
        }

        fn on_fact(&self, fact: &Fact<'_>) {
            self.facts.borrow_mut().push(format!("{fact:?}"));
        }
    }

    #[test]
    fn observer_gets_notes_until_it_is_dropped() {
        let counter = Rc::new(Counter::default());
        let observing = Observing::begin(Rc::clone(&counter) as Rc<dyn Observer>);
        reached(Situation::HangEnded);
        note(&Fact::EntriesWritten);
        drop(observing);
        reached(Situation::WorkerLeft);
        note(&Fact::EntryDecided);
        assert_eq!(*counter.situations.borrow(), [Situation::HangEnded]);
        assert_eq!(*counter.facts.borrow(), ["EntriesWritten"]);
    }
}
