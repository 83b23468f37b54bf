//! Suspension of a command without a worker: a gate, a command and its signals. The whole-system tests cover
//! stopping real tasks.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
use napreduce_protocol::{Counter, FromTask, TaskError, WireError};
use rustix::process::{Pid, Signal, kill_process};

use super::CommandPlace;
use super::{CommandLine, RunningCommand};
use crate::context::{Supervisor, SuspendHooks, TaskContext};

const DEADLINE: Duration = Duration::from_secs(60);

/// More than a pipe can buffer.
const MUCH: &[u8] = &[b'\n'; 100_000];

const MAP: TaskId = TaskId {
    job: JobId(1),
    kind: TaskKind::Map,
    index: 0,
};

/// A running command that has printed its process ID.
struct Scene {
    context: Arc<TaskContext>,
    messages: Receiver<FromTask>,
    command: RunningCommand,
    process: Pid,
}

struct Messages(Sender<FromTask>);

impl Supervisor for Messages {
    fn tell(&self, message: &FromTask) -> Result<(), WireError> {
        self.0
            .send(message.clone())
            .map_err(|_| WireError::CutShort)
    }

    fn catch_up(&self) {}
}

impl Scene {
    fn start(script: &str) -> Scene {
        let context = Arc::new(TaskContext::new(
            AttemptId {
                task: MAP,
                number: 1,
            },
            1 << 20,
        ));
        let (sender, messages) = channel();
        context.gate().attach(Box::new(Messages(sender)));
        let place = CommandPlace::default();
        let mut command = RunningCommand::start(
            &CommandLine::new("mapper", script),
            &place,
            context.presence(),
        )
        .expect("a shell");
        let process = command_says(&mut command)
            .parse()
            .ok()
            .and_then(Pid::from_raw)
            .expect("a number");
        Scene {
            context,
            messages,
            command,
            process,
        }
    }
}

/// Reads the first line of the command.
fn command_says(command: &mut RunningCommand) -> String {
    let mut received = Vec::new();
    loop {
        let fed = command.feed(&[MUCH], &mut |piece| {
            received.extend_from_slice(piece);
            Err(TaskError::task("that is enough"))
        });
        if let Some(end) = received.iter().position(|byte| *byte == b'\n') {
            return String::from_utf8_lossy(&received[..end]).into_owned();
        }
        assert!(fed.is_ok() || !received.is_empty(), "{fed:?}");
    }
}

/// Feeds the command until a write fails.
fn feed_to_failure(mut command: RunningCommand) -> TaskError {
    loop {
        if let Err(error) = command.feed(&[MUCH], &mut |_| Ok(())) {
            return error;
        }
    }
}

#[test]
fn task_waiting_for_command_reaches_its_gate() {
    // The command reads nothing for longer than the test takes.
    let Scene {
        context,
        messages,
        command,
        process,
    } = Scene::start("echo $$; exec sleep 1000");
    let working = std::thread::spawn(move || feed_to_failure(command));
    for epoch in 1..=3 {
        context.gate().suspend(epoch, false);
        assert_eq!(
            messages.recv_timeout(DEADLINE),
            Ok(FromTask::Ready {
                epoch,
                saves: false
            })
        );
        assert!(!context.gate().resume(epoch), "the work is at its gate");
        assert_eq!(
            messages.recv_timeout(DEADLINE),
            Ok(FromTask::Resumed { epoch })
        );
    }
    kill_process(process, Signal::KILL).expect("it is there");
    let error = working.join().expect("no panic");
    assert!(
        error.message.contains("was killed by signal 9 (SIGKILL)"),
        "{error}"
    );
}

#[test]
fn command_handling_stop_requests_gets_time_to_stop() {
    let script =
        "trap 'sleep 0.2; kill -STOP $$; exit 7' TSTP; echo $$; while :; do sleep 0.01; done";
    let Scene {
        context,
        messages,
        command,
        process,
    } = Scene::start(script);
    let working = std::thread::spawn(move || feed_to_failure(command));
    context.gate().suspend(1, false);
    assert_eq!(
        messages.recv_timeout(DEADLINE),
        Ok(FromTask::Ready {
            epoch: 1,
            saves: false
        })
    );
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()))
        .expect("it is there");
    assert!(stat.contains(") T "), "ready before it was: {stat}");
    // As the worker does.
    kill_process(process, Signal::CONT).expect("it is there");
    assert!(!context.gate().resume(1));
    assert_eq!(
        messages.recv_timeout(DEADLINE),
        Ok(FromTask::Resumed { epoch: 1 })
    );
    working.join().expect("no panic");
}

#[test]
fn command_stopping_too_late_is_continued() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = folder.path().join("asked");
    let script = format!(
        "trap 'echo > {}; sleep 0.5; kill -STOP $$; exit 7' TSTP; echo $$; while :; do sleep 0.01; done",
        asked.display()
    );
    let Scene {
        context,
        messages,
        command,
        ..
    } = Scene::start(&script);
    let working = std::thread::spawn(move || feed_to_failure(command));
    context.gate().suspend(1, false);
    // The grace expires before the command has stopped itself, and it is resumed before it does.
    wait_until("it was asked to stop", || asked.exists());
    assert!(!context.gate().resume(1), "the work is at its gate");
    assert_eq!(
        messages.recv_timeout(DEADLINE),
        Ok(FromTask::Ready {
            epoch: 1,
            saves: false
        })
    );
    assert_eq!(
        messages.recv_timeout(DEADLINE),
        Ok(FromTask::Resumed { epoch: 1 })
    );
    // The command ends, so it was continued.
    working.join().expect("no panic");
}

#[test]
fn command_ending_at_stop_request_fails_its_task() {
    let mut scene = Scene::start("trap 'exit 0' TSTP; echo $$; while :; do sleep 0.01; done");
    scene.command.on_suspend().expect("it was asked to stop");
    let error = feed_to_failure(scene.command);
    let says = "ended before it had read all of its input, after SIGTSTP";
    assert!(error.message.contains(says), "{error}");
}

#[test]
fn command_usage_includes_its_children() {
    let context = TaskContext::new(
        AttemptId {
            task: MAP,
            number: 1,
        },
        1 << 20,
    );
    let script = "awk 'BEGIN { s = \"x\"; while (length(s) < 20000000) s = s s; print length(s); fflush() } { n++ }'; true";
    let place = CommandPlace::default();
    let mut command = RunningCommand::start(
        &CommandLine::new("mapper", script),
        &place,
        context.presence(),
    )
    .expect("a shell");
    assert_eq!(command_says(&mut command), (1 << 25).to_string());
    command.look_at_memory();
    let held = context.counters().get(Counter::PeakCommandBytes);
    assert!((20_000_000..1 << 30).contains(&held), "{held} bytes");
    command.finish(&mut |_| Ok(())).expect("it ends");
    let took = context.counters().get(Counter::CommandCpuMillis);
    assert!((1..600_000).contains(&took), "{took} ms");
}

/// Feeds a command a megabyte of newlines and reports the progress of the reader.
fn feed_a_megabyte(context: &TaskContext, script: &str) -> RunningCommand {
    let place = CommandPlace::default();
    let line = CommandLine::new("mapper", script);
    let mut command = RunningCommand::start(&line, &place, context.presence()).expect("a shell");
    command.judge_by_output();
    let piece = [b'\n'; 1 << 10];
    context.progress().set_total(1 << 20);
    for fed in 0..1 << 10 {
        context.progress().set_done(fed << 10);
        command.feed(&[&piece], &mut |_| Ok(())).expect("it reads");
    }
    context.progress().set_done(1 << 20);
    command
}

#[test]
fn progress_of_silent_command_stays_at_its_beginning() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = Arc::new(TaskContext::new(
        AttemptId {
            task: MAP,
            number: 1,
        },
        1 << 20,
    ));
    let script = format!(
        "cd {}; cat > all; echo > read; while [ ! -e open ]; do sleep 0.01; done; cat all",
        folder.path().display()
    );
    let mut command = feed_a_megabyte(&context, &script);
    let working = std::thread::spawn(move || command.finish(&mut |_| Ok(())));
    wait_until("it has read all", || folder.path().join("read").exists());
    assert_eq!(context.progress().done(), 0);
    fs::write(folder.path().join("open"), "").expect("an open gate");
    working.join().expect("no panic").expect("it ends");
    assert_eq!(context.progress().done(), 1 << 20);
}

#[test]
fn progress_of_answering_command_follows_its_output() {
    let context = TaskContext::new(
        AttemptId {
            task: MAP,
            number: 1,
        },
        1 << 20,
    );
    let mut command = feed_a_megabyte(&context, "cat");
    let done = context.progress().done();
    assert!(
        (400_000..=(1 << 20) - (128 << 10)).contains(&done),
        "{done} bytes"
    );
    command.finish(&mut |_| Ok(())).expect("it ends");
    drop(command);
    assert_eq!(context.progress().done(), 1 << 20);
}

#[test]
fn dropped_command_is_killed_with_its_children() {
    let Scene {
        command, process, ..
    } = Scene::start("sh -c 'echo $$; exec sleep 1000' & wait");
    drop(command);
    // Its parent has also ended; its new parent may reap it at any time.
    wait_until("it has ended", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
        stat.map_or(true, |stat| stat.contains(") Z "))
    });
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < DEADLINE, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
