//! Attempts that are suspended and resumed, with real processes. A slot is free only when the kernel confirms
//! the stop, and no work is lost.

use std::fs;
use std::time::Duration;

use napreduce_cluster::end_leftovers;
use napreduce_engine::{FailureClass, Order, Report, Start};
use napreduce_local::process::ProcessMemory;
use napreduce_protocol::{Preempted, PreemptionAccount};
use rustix::process::{Pid, Signal, kill_process};

use super::line::Line;
use super::processes::{Daemon, Moment, states_of};
use super::script::*;

/// A map attempt and the pauses of its task.
struct Scene {
    script: Script,
    daemon: Daemon,
    line: Line,
    moment: Moment,
}

async fn living(manner: &str, options: &[&str]) -> Scene {
    let mut script = Script::new().await;
    let daemon = script.start(options);
    let mut line = script.join().await;
    line.define(script.job(&format!("* work {manner} SOCKET")))
        .await;
    line.launch(map(1), script.map_work()).await;
    let moment = script.moment().await;
    line.assert_happened(1, map(1), Report::Started).await;
    Scene {
        script,
        daemon,
        line,
        moment,
    }
}

impl Scene {
    async fn suspend(&mut self) -> PreemptionAccount {
        self.line.order(Order::Suspend { attempt: map(1) }).await;
        let account = self.line.preempted(map(1), Report::Suspended).await;
        let states = self.moment.process.states();
        assert!(
            states.chars().all(|state| state == 'T'),
            "reported as stopped, but its threads are {states}"
        );
        account
    }

    /// As `suspend`, of a task that does not reach its gate.
    async fn suspend_at_work(&mut self) -> PreemptionAccount {
        self.line.order(Order::Suspend { attempt: map(1) }).await;
        let account = self.line.preempted(map(1), Report::SuspendedAtWork).await;
        assert!(
            self.moment
                .process
                .states()
                .chars()
                .all(|state| state == 'T')
        );
        account
    }

    async fn resume(&mut self) -> PreemptionAccount {
        self.line.order(Order::Resume { attempt: map(1) }).await;
        self.line.preempted(map(1), Report::Resumed).await
    }

    /// Finishes the work; returns the reported active time.
    async fn finish(mut self) -> u64 {
        self.moment.let_go().await;
        let line = self.moment.line().await;
        let active = line
            .strip_prefix("active ")
            .unwrap_or_else(|| panic!("{line}"))
            .parse()
            .unwrap();
        self.line.assert_ends_well(map(1)).await;
        active
    }
}

#[tokio::test(flavor = "current_thread")]
async fn suspended_attempt_stops_and_continues_on_resume() {
    let mut scene = living("tame", &[]).await;
    let account = scene.suspend().await;
    assert_eq!(account.what, Preempted::Suspended);
    assert!(
        account.micros > 0 && account.resident_bytes > 4096,
        "{account:?}"
    );
    assert_eq!(scene.moment.line().await, "suspend");
    scene
        .line
        .hear_nothing_for(Duration::from_millis(300))
        .await;
    let account = scene.resume().await;
    assert_eq!(account.what, Preempted::Resumed);
    assert!(account.suspended_millis >= 300, "{account:?}");
    assert_eq!(scene.moment.line().await, "resume");
    scene.finish().await;
}

#[tokio::test(flavor = "current_thread")]
async fn attempt_without_boundary_is_stopped_anywhere_at_once() {
    let mut scene = living("stubborn", &["grace_millis=600000"]).await;
    let account = scene.suspend_at_work().await;
    assert!(
        account.micros >= 50_000,
        "it may reach a boundary: {account:?}"
    );
    scene
        .line
        .hear_nothing_for(Duration::from_millis(1_500))
        .await;
    let resumed = scene.resume().await;
    assert!(resumed.suspended_millis >= 1_500, "{resumed:?}");
    let active = scene.finish().await;
    let all = account.active_millis + resumed.suspended_millis;
    assert!(
        active < all + 1_000,
        "{active} ms of activity, though it was stopped for most of the time: {all}"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn attempt_with_something_in_flight_is_stopped_after_its_grace() {
    let mut scene = living("sending", &["grace_millis=300"]).await;
    let account = scene.suspend_at_work().await;
    assert!(account.micros >= 300_000, "{account:?}");
    scene.resume().await;
    scene.finish().await;
}

#[tokio::test(flavor = "current_thread")]
async fn attempt_stopped_anywhere_can_be_stopped_again_and_killed() {
    let mut scene = living("stubborn", &["grace_millis=600000"]).await;
    for _ in 0..3 {
        scene.suspend_at_work().await;
        scene.resume().await;
    }
    scene.suspend_at_work().await;
    scene.line.order(Order::Kill { attempt: map(1) }).await;
    scene.line.preempted(map(1), Report::Killed).await;
    scene.moment.process.assert_gone().await;
}

#[tokio::test(flavor = "current_thread")]
async fn stop_is_reported_once_all_threads_and_children_stopped() {
    let mut scene = living("busy", &[]).await;
    for _ in 0..5 {
        scene.suspend().await;
        scene.resume().await;
    }
    let mut scene = living("parent", &[]).await;
    let line = scene.moment.line().await;
    let child = line.strip_prefix("child ").unwrap().parse().unwrap();
    scene.suspend().await;
    assert_eq!(states_of(child), "T");
    scene.resume().await;
    assert_ne!(states_of(child), "T");
    assert_eq!(scene.moment.line().await, "suspend");
    assert_eq!(scene.moment.line().await, "resume");
    scene.finish().await;
    until("the end of the child", || {
        matches!(states_of(child).as_str(), "" | "Z")
    })
    .await;
}

/// A scene whose task has processes in other groups and sessions; returns them, too.
async fn household() -> (Scene, Vec<i32>) {
    let mut scene = living("household", &[]).await;
    let line = scene.moment.line().await;
    let ids = line.strip_prefix("children ").unwrap().split(' ');
    let children: Vec<i32> = ids.map(|id| id.parse().unwrap()).collect();
    assert_eq!(children.len(), 5);
    (scene, children)
}

fn is_gone(process: i32) -> bool {
    matches!(states_of(process).as_str(), "" | "Z" | "X")
}

#[tokio::test(flavor = "current_thread")]
async fn processes_of_other_groups_and_sessions_stop_and_continue_with_their_task() {
    let (mut scene, children) = household().await;
    for _ in 0..3 {
        scene.suspend().await;
        for child in &children {
            assert_eq!(states_of(*child), "T");
        }
        scene.resume().await;
        for child in &children {
            assert_ne!(states_of(*child), "T");
        }
        assert_eq!(scene.moment.line().await, "suspend");
        assert_eq!(scene.moment.line().await, "resume");
    }
    scene.suspend().await;
    kill_process(Pid::from_raw(children[1]).unwrap(), Signal::CONT).unwrap();
    until("another stop", || states_of(children[1]) == "T").await;
    scene.line.order(Order::Kill { attempt: map(1) }).await;
    scene.line.preempted(map(1), Report::Killed).await;
    for child in children {
        until("the end of a child", || is_gone(child)).await;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn processes_of_other_sessions_die_with_their_worker() {
    for suspended in [true, false] {
        let (mut scene, children) = household().await;
        if suspended {
            scene.suspend().await;
        }
        scene.daemon.signal(Signal::KILL);
        scene.daemon.end().await;
        scene.moment.process.assert_gone().await;
        for child in children {
            until("the end of a child", || is_gone(child)).await;
        }
    }
}

/// Returns the process that watches a daemon.
fn watcher_of(daemon: u32) -> Option<i32> {
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(process) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        let line = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let is_child = status.contains(&format!("PPid:\t{daemon}\n"));
        if is_child && line.contains("--napreduce-watcher") && !is_gone(process) {
            return Some(process);
        }
    }
    None
}

#[tokio::test(flavor = "current_thread")]
async fn killed_watcher_is_replaced() {
    let (mut scene, children) = household().await;
    scene.suspend().await;
    let daemon = scene.daemon.id();
    let first = watcher_of(daemon).unwrap();
    kill_process(Pid::from_raw(first).unwrap(), Signal::KILL).unwrap();
    until("another watcher", || {
        watcher_of(daemon).is_some_and(|process| process != first)
    })
    .await;
    scene.daemon.signal(Signal::KILL);
    scene.daemon.end().await;
    for child in children {
        until("the end of a child", || is_gone(child)).await;
    }
}

/// Kills a worker and its watcher at once; returns what the suspended task has left.
async fn left_without_watcher() -> (Script, Vec<i32>) {
    let (mut scene, children) = household().await;
    scene.suspend().await;
    end_leftovers(&scene.script.cluster());
    assert!(
        children.iter().all(|child| states_of(*child) == "T"),
        "the worker lives"
    );
    let daemon = scene.daemon.id();
    let watcher = Pid::from_raw(watcher_of(daemon).unwrap()).unwrap();
    // A stopped worker starts no other watcher. (The kernel would continue a stopped watcher at the end of its worker.)
    scene.daemon.signal(Signal::STOP);
    let is_stopped = || {
        states_of(daemon.cast_signed())
            .chars()
            .all(|state| state == 'T')
    };
    until("the stop of the worker", is_stopped).await;
    kill_process(watcher, Signal::KILL).unwrap();
    scene.daemon.signal(Signal::KILL);
    scene.daemon.end().await;
    scene.moment.process.assert_gone().await;
    (scene.script, children)
}

#[tokio::test(flavor = "current_thread")]
async fn next_worker_ends_what_a_killed_worker_and_watcher_left() {
    let (mut script, children) = left_without_watcher().await;
    assert!(
        children.iter().any(|child| !is_gone(*child)),
        "nothing was left"
    );
    let _daemon = script.start(&[]);
    script.join().await;
    assert!(
        children.iter().all(|child| is_gone(*child)),
        "before it joins"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn leftovers_of_workers_that_are_not_started_again_end() {
    let (script, children) = left_without_watcher().await;
    assert!(
        children.iter().any(|child| !is_gone(*child)),
        "nothing was left"
    );
    end_leftovers(&script.cluster());
    assert!(children.iter().all(|child| is_gone(*child)));
}

#[tokio::test(flavor = "current_thread")]
async fn early_resume_is_not_lost() {
    let mut scene = living("tame", &[]).await;
    let mut micros: Vec<(u64, u64)> = Vec::new();
    for _ in 0..100 {
        scene.line.order(Order::Suspend { attempt: map(1) }).await;
        scene.line.order(Order::Resume { attempt: map(1) }).await;
        let suspended = scene.line.preempted(map(1), Report::Suspended).await;
        let resumed = scene.line.preempted(map(1), Report::Resumed).await;
        micros.push((suspended.micros, resumed.micros));
        assert_eq!(scene.moment.line().await, "suspend");
        assert_eq!(scene.moment.line().await, "resume");
    }
    micros.sort();
    println!("the median suspend took {} us", micros[50].0);
    micros.sort_by_key(|(_, resume)| *resume);
    println!("the median resume took {} us", micros[50].1);
    scene.finish().await;
}

#[tokio::test(flavor = "current_thread")]
async fn slow_suspend_hook_is_stopped_after_grace() {
    let mut scene = living("slow", &["grace_millis=50"]).await;
    scene.suspend_at_work().await;
    assert_eq!(scene.moment.line().await, "suspend");
    scene.resume().await;
    assert_eq!(scene.moment.line().await, "resume");
    scene.finish().await;
}

#[tokio::test(flavor = "current_thread")]
async fn attempt_ending_during_suspend_fails() {
    let mut scene = living("mortal", &[]).await;
    scene.line.order(Order::Suspend { attempt: map(1) }).await;
    let (class, reason) = scene.line.failure().await;
    assert_eq!(
        (class, reason.as_str()),
        (
            FailureClass::Task,
            "process exited with status 7 before finishing"
        )
    );

    let mut scene = living("unwilling", &[]).await;
    scene.line.order(Order::Suspend { attempt: map(1) }).await;
    let (class, reason) = scene.line.failure().await;
    assert_eq!(
        (class, reason.as_str()),
        (FailureClass::Task, "it holds on to what it has")
    );
}

#[tokio::test(flavor = "current_thread")]
async fn external_kill_of_suspended_process_is_reported() {
    let mut scene = living("tame", &[]).await;
    scene.suspend().await;
    scene.moment.process.signal(Signal::KILL);
    let (class, reason) = scene.line.failure().await;
    assert_eq!(class, FailureClass::Retryable);
    assert_eq!(
        reason,
        "process ended by signal 9 (SIGKILL) while suspended"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn killed_suspended_attempt_leaves_nothing() {
    let mut scene = living("tame", &[]).await;
    scene.suspend().await;
    scene.line.order(Order::Kill { attempt: map(1) }).await;
    let account = scene.line.preempted(map(1), Report::Killed).await;
    assert_eq!(account.what, Preempted::Killed);
    assert!(scene.moment.process.is_gone());
    let scratch = scene.script.own(&format!("jobs/{JOB}/scratch/{}", map(1)));
    assert!(fs::read_dir(scratch).map_or(0, Iterator::count) == 0);
}

#[tokio::test(flavor = "current_thread")]
async fn suspended_attempts_die_with_their_worker() {
    let mut scene = living("parent", &[]).await;
    let line = scene.moment.line().await;
    let child: i32 = line.strip_prefix("child ").unwrap().parse().unwrap();
    scene.suspend().await;
    scene.daemon.signal(Signal::KILL);
    scene.daemon.end().await;
    scene.moment.process.assert_gone().await;
    until("the end of the child", || {
        matches!(states_of(child).as_str(), "" | "Z")
    })
    .await;
}

#[tokio::test(flavor = "current_thread")]
async fn external_sigcont_is_undone() {
    let mut scene = living("stubborn", &["grace_millis=10"]).await;
    scene.suspend_at_work().await;
    for _ in 0..5 {
        scene.moment.process.signal(Signal::CONT);
        scene
            .line
            .hear_nothing_for(Duration::from_millis(100))
            .await;
        until("another stop", || {
            scene
                .moment
                .process
                .states()
                .chars()
                .all(|state| state == 'T')
        })
        .await;
    }
    scene.resume().await;
    scene.finish().await;
}

#[tokio::test(flavor = "current_thread")]
async fn external_sigtstp_is_reported_and_stops_nothing() {
    let mut scene = living("tame", &[]).await;
    scene.moment.process.signal(Signal::TSTP);
    let wanted = napreduce_protocol::WorkerReport::SuspendWanted { attempt: map(1) };
    assert_eq!(scene.line.report().await.1, wanted);
    assert!(!scene.moment.process.states().contains('T'));
    scene.suspend().await;
    scene.resume().await;
}

#[tokio::test(flavor = "current_thread")]
async fn suspended_attempt_is_not_hung() {
    let mut scene = living("tame", &["silence_millis=400"]).await;
    scene.suspend().await;
    scene
        .line
        .hear_nothing_for(Duration::from_millis(2_000))
        .await;
    scene.resume().await;
    assert_eq!(scene.moment.line().await, "suspend");
    assert_eq!(scene.moment.line().await, "resume");
    scene.finish().await;
}

#[tokio::test(flavor = "current_thread")]
async fn suspend_beyond_machine_memory_is_refused() {
    let mut scene = living("tame", &["suspend_bytes=4096"]).await;
    scene.line.order(Order::Suspend { attempt: map(1) }).await;
    let reason = scene.line.suspend_refusal(map(1)).await;
    assert!(
        reason.starts_with("suspended attempts would hold "),
        "{reason}"
    );
    assert!(!scene.moment.process.states().contains('T'));
    scene.finish().await;
}

#[tokio::test(flavor = "current_thread")]
async fn memory_is_paged_out_or_the_reason_reported() {
    let mut scene = living("large", &["page_out=always"]).await;
    assert_eq!(scene.moment.line().await, "filled");
    let account = scene.suspend().await;
    let most = 32 << 20;
    assert!(account.resident_bytes > most, "{account:?}");
    if napreduce_local::process::SpareMemory::read()
        .unwrap()
        .swap_free
        < 3 * most
    {
        println!("partly skipped: there is no swap");
        assert_eq!(account.notes, ["not paged out: no free swap"]);
        scene.resume().await;
    } else {
        let id = scene.moment.process.id();
        let swapped = || {
            ProcessMemory::read(Pid::from_raw(id).unwrap())
                .unwrap()
                .swapped
        };
        until("swapped-out memory", || swapped() > most).await;
        let account = scene.resume().await;
        assert!(
            account.swapped_out_bytes > most && account.notes.is_empty(),
            "{account:?}"
        );
        println!("after {} us it runs again: {account:?}", account.micros);
    }
    assert_eq!(scene.moment.line().await, "suspend");
    assert_eq!(scene.moment.line().await, "resume");
    scene.finish().await;
}

#[tokio::test(flavor = "current_thread")]
async fn suspend_works_before_a_commit_grant_and_not_after() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    line.define(script.job("")).await;
    line.launch(map(1), script.map_work()).await;
    line.assert_happened(1, map(1), Report::Started).await;
    line.assert_finished(2, map(1)).await;
    line.launch_reduce(reduce(1), &[map(1)]).await;
    line.assert_happened(3, reduce(1), Report::Started).await;
    line.assert_happened(4, reduce(1), Report::CommitRequested)
        .await;
    line.order(Order::Suspend { attempt: reduce(1) }).await;
    line.preempted(reduce(1), Report::Suspended).await;
    line.order(Order::Resume { attempt: reduce(1) }).await;
    line.preempted(reduce(1), Report::Resumed).await;
    line.order(Order::Commit { attempt: reduce(1) }).await;
    line.order(Order::Suspend { attempt: reduce(1) }).await;
    line.assert_ends_well(reduce(1)).await;
}

#[tokio::test(flavor = "current_thread")]
async fn reduce_waiting_for_inputs_can_be_suspended() {
    let mut script = Script::new().await;
    let _daemon = script.start(&["network_shuffle=yes"]);
    let mut line = script.join().await;
    line.define(script.job("")).await;
    line.launch(map(1), script.map_work()).await;
    line.assert_happened(1, map(1), Report::Started).await;
    line.assert_finished(2, map(1)).await;
    line.launch_reduce(reduce(1), &[]).await;
    line.assert_happened(3, reduce(1), Report::Started).await;
    line.order(Order::Suspend { attempt: reduce(1) }).await;
    let account = line.preempted(reduce(1), Report::Suspended).await;
    assert!(
        account.micros < 1_000_000,
        "it did not reach its gate in time: {account:?}"
    );
    line.order(Order::Resume { attempt: reduce(1) }).await;
    line.preempted(reduce(1), Report::Resumed).await;
}

#[tokio::test(flavor = "current_thread")]
async fn inputs_announced_during_stop_arrive_on_resume() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    line.define(script.job("")).await;
    line.launch(map(1), script.map_work()).await;
    line.assert_happened(1, map(1), Report::Started).await;
    line.assert_finished(2, map(1)).await;
    line.launch_reduce(reduce(1), &[]).await;
    line.assert_happened(3, reduce(1), Report::Started).await;
    line.order(Order::Suspend { attempt: reduce(1) }).await;
    line.preempted(reduce(1), Report::Suspended).await;
    line.more_inputs(reduce(1), map(1)).await;
    line.hear_nothing_for(Duration::from_millis(300)).await;
    line.order(Order::Resume { attempt: reduce(1) }).await;
    line.preempted(reduce(1), Report::Resumed).await;
    assert_eq!(
        line.report().await.1,
        happened(reduce(1), Report::CommitRequested)
    );
}

#[tokio::test(flavor = "current_thread")]
async fn checkpointed_attempt_is_continued_by_another() {
    let mut scene = living("tame", &[]).await;
    scene
        .line
        .order(Order::Checkpoint { attempt: map(1) })
        .await;
    let account = scene.line.preempted(map(1), Report::Checkpointed).await;
    assert_eq!(
        (account.what, account.checkpoint_bytes),
        (Preempted::Checkpointed, 20)
    );
    assert!(scene.moment.process.is_gone());
    let work = scene.script.map_work();
    scene
        .line
        .launch_from(map(2), Start::Checkpoint(map(1)), work)
        .await;
    assert_eq!(
        scene.line.report().await.1,
        happened(map(2), Report::Started)
    );
    assert_eq!(scene.line.account(map(2)).await.what, Preempted::Restored);
    scene.moment = scene.script.moment().await;
    scene.moment.let_go().await;
    let line = scene.moment.line().await;
    let active: u64 = line.strip_prefix("active ").unwrap().parse().unwrap();
    assert!(
        active >= 1_000_000,
        "the time of the first attempt is lost: {active}"
    );
    scene.line.assert_ends_well(map(2)).await;
}

#[tokio::test(flavor = "current_thread")]
async fn suspended_attempt_is_woken_to_checkpoint() {
    let mut scene = living("tame", &[]).await;
    scene.suspend().await;
    scene
        .line
        .order(Order::Checkpoint { attempt: map(1) })
        .await;
    let account = scene.line.preempted(map(1), Report::Checkpointed).await;
    assert_eq!(account.what, Preempted::Checkpointed);
    assert_eq!(scene.moment.line().await, "suspend");
    assert_eq!(scene.moment.line().await, "resume");
    assert!(scene.moment.process.is_gone());
}

#[tokio::test(flavor = "current_thread")]
async fn unusable_checkpoint_is_reported() {
    let mut scene = living("tame", &[]).await;
    let work = scene.script.map_work();
    scene
        .line
        .launch_from(map(2), Start::Checkpoint(map(9)), work)
        .await;
    assert_eq!(
        scene.line.report().await.1,
        happened(map(2), Report::Started)
    );
    let refused = Preempted::RestoreRefused("no checkpoint of the fixture".into());
    assert_eq!(scene.line.account(map(2)).await.what, refused);
}
