//! Requests and waits at the gate of an attempt. The tests of the worker cover stopping real processes.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use super::*;

const DEADLINE: Duration = Duration::from_secs(60);

struct Messages(Sender<FromTask>);

impl Supervisor for Messages {
    fn tell(&self, message: &FromTask) -> Result<(), WireError> {
        self.0
            .send(message.clone())
            .map_err(|_| WireError::CutShort)
    }

    fn catch_up(&self) {}
}

#[derive(Default)]
struct Calls(Vec<&'static str>);

impl SuspendHooks for Calls {
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        self.0.push("suspend");
        Ok(())
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        self.0.push("resume");
        Ok(())
    }
}

fn attached() -> (Arc<Gate>, std::sync::mpsc::Receiver<FromTask>) {
    let (sender, messages) = channel();
    let gate = Arc::new(Gate::default());
    gate.attach(Box::new(Messages(sender)));
    (gate, messages)
}

#[test]
fn gate_without_requests_is_open() {
    let (gate, messages) = attached();
    assert!(!gate.is_asked());
    assert_eq!(gate.pass(&mut (), true), Ok(Boundary::GoOn));
    assert!(messages.try_recv().is_err());
}

#[test]
fn suspended_work_waits_at_gate_until_resumed() {
    let (gate, messages) = attached();
    gate.suspend(1, false);
    assert!(gate.is_asked());
    let passing = {
        let gate = Arc::clone(&gate);
        std::thread::spawn(move || {
            let mut calls = Calls::default();
            let passed = gate.pass(&mut calls, true);
            (passed, calls.0)
        })
    };
    assert_eq!(
        messages.recv_timeout(DEADLINE),
        Ok(FromTask::Ready {
            epoch: 1,
            saves: true
        })
    );
    assert!(!gate.resume(1), "the waiting thread acknowledges");
    assert_eq!(
        messages.recv_timeout(DEADLINE),
        Ok(FromTask::Resumed { epoch: 1 })
    );
    assert_eq!(
        passing.join().expect("no panic"),
        (Ok(Boundary::GoOn), vec!["suspend", "resume"])
    );
    assert!(!gate.is_asked());
}

#[test]
fn stop_away_from_gate_is_acknowledged_by_control_thread() {
    let (gate, _heard) = attached();
    gate.suspend(1, false);
    assert!(gate.resume(1));
    assert!(!gate.is_asked());
    assert_eq!(gate.pass(&mut (), true), Ok(Boundary::GoOn));
}

#[test]
fn process_may_be_stopped_anywhere_unless_something_is_in_flight() {
    let (gate, _heard) = attached();
    assert_eq!(gate.allow_stop_anywhere(), None, "nothing is requested");
    let first = gate.begin_in_flight();
    let second = gate.begin_in_flight();
    gate.suspend(1, true);
    assert!(gate.awaits_boundary());
    assert_eq!(gate.allow_stop_anywhere(), None);
    drop(first);
    assert_eq!(gate.allow_stop_anywhere(), None);
    drop(second);
    assert_eq!(gate.allow_stop_anywhere(), Some((1, true)));
    assert_eq!(gate.allow_stop_anywhere(), None, "once");
    assert!(!gate.awaits_boundary());
    assert!(gate.resume(1), "the control thread acknowledges");
    gate.suspend(2, false);
    assert_eq!(gate.allow_stop_anywhere(), Some((2, false)));
}

/// The process may be stopped while the hooks run.
#[test]
fn work_that_reaches_the_gate_too_late_calls_no_hooks() {
    let (gate, messages) = attached();
    gate.suspend(1, false);
    assert_eq!(gate.allow_stop_anywhere(), Some((1, false)));
    let passing = {
        let gate = Arc::clone(&gate);
        std::thread::spawn(move || {
            let mut calls = Calls::default();
            let passed = gate.pass(&mut calls, true);
            (passed, calls.0)
        })
    };
    while gate.lock().held.is_none() {
        std::thread::yield_now();
    }
    assert!(!gate.resume(1), "the waiting thread acknowledges");
    assert_eq!(
        passing.join().expect("no panic"),
        (Ok(Boundary::GoOn), vec![])
    );
    assert_eq!(
        messages.recv_timeout(DEADLINE),
        Ok(FromTask::Resumed { epoch: 1 })
    );
}

#[test]
fn work_at_its_gate_is_not_stopped_anywhere() {
    let (gate, messages) = attached();
    gate.suspend(1, false);
    let passing = {
        let gate = Arc::clone(&gate);
        std::thread::spawn(move || gate.pass(&mut (), true))
    };
    assert_eq!(
        messages.recv_timeout(DEADLINE),
        Ok(FromTask::Ready {
            epoch: 1,
            saves: true
        })
    );
    assert_eq!(gate.allow_stop_anywhere(), None);
    gate.resume(1);
    assert_eq!(passing.join().expect("no panic"), Ok(Boundary::GoOn));
}

#[test]
fn nothing_begins_while_the_process_may_be_stopped() {
    let (gate, _heard) = attached();
    gate.suspend(1, false);
    assert_eq!(gate.allow_stop_anywhere(), Some((1, false)));
    let beginning = {
        let gate = Arc::clone(&gate);
        std::thread::spawn(move || {
            let in_flight = gate.begin_in_flight();
            let is_suspended = gate.lock().suspend.is_some();
            drop(in_flight);
            is_suspended
        })
    };
    gate.resume(1);
    assert!(!beginning.join().expect("no panic"));
}

#[test]
fn resume_for_checkpoint_returns_checkpoint() {
    let (gate, messages) = attached();
    gate.suspend(3, false);
    let passing = {
        let gate = Arc::clone(&gate);
        std::thread::spawn(move || gate.pass(&mut (), true))
    };
    assert_eq!(
        messages.recv_timeout(DEADLINE),
        Ok(FromTask::Ready {
            epoch: 3,
            saves: true
        })
    );
    gate.checkpoint();
    gate.resume(3);
    assert_eq!(passing.join().expect("no panic"), Ok(Boundary::Checkpoint));
    assert_eq!(
        messages.recv_timeout(DEADLINE),
        Ok(FromTask::Resumed { epoch: 3 })
    );
}

#[test]
fn failing_hook_fails_its_task() {
    struct Failing;
    impl SuspendHooks for Failing {
        fn on_suspend(&mut self) -> Result<(), TaskError> {
            Err(TaskError::task("cannot let go"))
        }
        fn on_resume(&mut self) -> Result<(), TaskError> {
            Ok(())
        }
    }
    let (gate, messages) = attached();
    gate.suspend(1, false);
    assert_eq!(
        gate.pass(&mut Failing, true),
        Err(TaskError::task("cannot let go"))
    );
    assert!(messages.try_recv().is_err(), "it is not ready");
}

#[test]
fn lost_worker_fails_the_task() {
    let (gate, messages) = attached();
    drop(messages);
    gate.suspend(1, false);
    let error = gate.pass(&mut (), true).expect_err("no worker receives it");
    assert!(error.message.starts_with("control channel: "), "{error}");
}

#[test]
fn script_is_followed_boundary_by_boundary() {
    let script = Script::new([
        (4, Ask::Checkpoint),
        (2, Ask::Suspend),
        (4, Ask::Suspend),
        (2, Ask::Suspend),
    ]);
    let gate = Gate::scripted(script);
    let mut calls = Calls::default();
    let passed: Vec<Boundary> = (0..3)
        .map(|_| gate.pass(&mut calls, true).expect("hooks do not fail"))
        .collect();
    assert_eq!(passed, [Boundary::GoOn; 3]);
    assert_eq!(calls.0, ["suspend", "resume", "suspend", "resume"]);
    assert_eq!(gate.pass(&mut calls, true), Ok(Boundary::Checkpoint));
    assert_eq!((gate.boundaries(), gate.is_asked()), (4, true));
}

#[test]
fn restore_is_reported_once() {
    let (gate, messages) = attached();
    gate.tell_restored();
    gate.tell_restored();
    gate.tell_restore_refused("damaged");
    assert_eq!(messages.recv_timeout(DEADLINE), Ok(FromTask::Restored));
    let refused = FromTask::RestoreRefused {
        reason: "damaged".to_owned(),
    };
    assert_eq!(messages.recv_timeout(DEADLINE), Ok(refused));
}
