//! Attempts that operators and the engine have suspended, resumed, checkpointed and killed.
//!
//! Owns the orders that workers get, and what history, listings and counters say afterwards. Workers here
//! account for what they are told to. Does not own restarts (`preemption_recovery`).

use napreduce_core::{AttemptId, AttemptState, JobId, Order, Primitive, Report, Start, TaskKind};
use napreduce_protocol::{
    CheckpointSupport, JobCommand, JobDetail, Preempted, PreemptionAccount, PreemptionEnd, TaskCommand,
    TaskPhase, TaskSummary, ToCoordinator, WorkerReport,
};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use tokio::time::timeout;

use super::{DEADLINE, Running, Scene, Worker, attempt};
use crate::coordinator::Refusal;

pub(super) fn account(what: Preempted, active_millis: u64) -> PreemptionAccount {
    PreemptionAccount {
        what,
        micros: 700,
        active_millis,
        suspended_millis: 0,
        resident_bytes: 4096,
        swapped_bytes: 0,
        swapped_out_bytes: 0,
        swapped_in_bytes: 0,
        checkpoint_bytes: 0,
        notes: Vec::new(),
    }
}

impl Running {
    pub(super) async fn command(
        &self,
        id: AttemptId,
        command: TaskCommand,
    ) -> Result<Vec<AttemptId>, Refusal> {
        let (task, reason) = (id.task, "ada asked".to_owned());
        self.command_task(task, None, command, reason).await
    }

    pub(super) async fn command_job(&self, job: JobId, command: JobCommand) -> Result<(), Refusal> {
        let reason = "at night".to_owned();
        self.done(ToCoordinator::CommandJob { job, command, reason }).await
    }

    pub(super) async fn detail(&self, job: JobId) -> Box<JobDetail> {
        self.job(job).await.expect("a known job")
    }

    pub(super) async fn task(&self, id: AttemptId) -> TaskSummary {
        let job = Some(id.task.job);
        let tasks = self.tasks(job).await.expect("a known job");
        tasks.into_iter().find(|task| task.task == id.task).expect("a task of it")
    }
}

impl Running {
    /// Waits until what workers said has arrived: an attempt is in this state.
    pub(super) async fn until(&self, id: AttemptId, state: &str) {
        let come = async {
            while !self
                .task(id)
                .await
                .live
                .iter()
                .any(|live| live.attempt == id && live.state.to_string() == state)
            {
                tokio::task::yield_now().await;
            }
        };
        timeout(DEADLINE, come).await.unwrap_or_else(|_| panic!("{id} does not become {state}"));
    }
}

impl Worker {
    pub(super) fn accounts(&mut self, attempt: AttemptId, account: PreemptionAccount) {
        self.report(WorkerReport::Preempted { attempt, account });
    }

    /// Obeys a suspend, after so much work.
    pub(super) async fn suspends(&mut self, attempt: AttemptId, active_millis: u64) {
        assert_eq!(self.order().await, Order::Suspend { attempt });
        self.accounts(attempt, account(Preempted::Suspended, active_millis));
        self.happened(attempt, Report::Suspended);
    }

    pub(super) async fn resumes(&mut self, attempt: AttemptId, suspended_millis: u64) {
        assert_eq!(self.order().await, Order::Resume { attempt });
        let swapped_in_bytes = 100;
        let told = account(Preempted::Resumed, 0);
        self.accounts(attempt, PreemptionAccount { suspended_millis, swapped_in_bytes, ..told });
        self.happened(attempt, Report::Resumed);
    }

    pub(super) async fn checkpoints(&mut self, attempt: AttemptId, active_millis: u64) {
        assert_eq!(self.order().await, Order::Checkpoint { attempt });
        let told = account(Preempted::Checkpointed, active_millis);
        self.accounts(attempt, PreemptionAccount { checkpoint_bytes: 50, ..told });
        self.happened(attempt, Report::Checkpointed);
    }

    /// The next attempt to launch, and whose checkpoint it starts from.
    pub(super) async fn restores(&mut self) -> (AttemptId, Option<AttemptId>) {
        match self.order().await {
            Order::Launch { attempt, from: Start::Checkpoint(saved), .. } => (attempt, Some(saved)),
            Order::Launch { attempt, from: Start::Fresh, .. } => (attempt, None),
            other => panic!("a launch was expected, not {other:?}"),
        }
    }
}

/// A job of two maps and a reduce on a worker with one slot, whose first map runs.
pub(super) async fn running(scene: &Scene) -> (Running, Worker, AttemptId) {
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    coordinator.submit(scene.submission(1, 2, 1)).await;
    let map = worker.launched().await;
    worker.started(map);
    (coordinator, worker, map)
}

pub(super) const JOB: JobId = JobId(1);

/// Does what is left of the job when its maps are done: its reduce.
async fn ended(scene: &Scene, coordinator: &Running, worker: &mut Worker) {
    let reduce = worker.launched().await;
    worker.do_reduce(scene, reduce).await;
    coordinator.end_of(JOB).await;
}

#[tokio::test]
async fn a_suspended_attempt_gives_its_slot_until_it_is_resumed() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = running(&scene).await;
    assert_eq!(coordinator.command(map, TaskCommand::Suspend).await, Ok(vec![map]));
    worker.suspends(map, 2_000).await;
    let other = worker.launched().await;
    assert_eq!(other, attempt(1, TaskKind::Map, 1, 1), "the slot is the next map's");
    worker.started(other);
    let listed = coordinator.task(map).await;
    assert_eq!((listed.state, listed.live[0].state), (TaskPhase::Suspended, AttemptState::Suspended));
    assert_eq!(listed.reason.as_deref(), Some("suspend by operator: ada asked"));
    assert_eq!(coordinator.detail(JOB).await.summary.progress.map.suspended, 1);
    assert_eq!(coordinator.command(map, TaskCommand::Resume).await, Ok(vec![map]));
    worker.finished(other, None);
    worker.resumes(map, 300).await;
    worker.finished(map, None);
    ended(&scene, &coordinator, &mut worker).await;
    let detail = coordinator.detail(JOB).await;
    let [stop] = &detail.preemptions[..] else { panic!("{:?}", detail.preemptions) };
    assert_eq!(
        (stop.primitive, stop.asked, stop.by.as_str()),
        (Primitive::Suspend, Primitive::Suspend, "operator")
    );
    assert_eq!(
        (stop.end, stop.worker_micros, stop.work_saved_millis),
        (Some(PreemptionEnd::Suspended), Some(700), 2_000)
    );
    assert!(stop.requested_micros <= stop.ordered_micros.expect("ordered"), "{stop:?}");
    assert!(stop.ordered_micros < stop.freed_micros && stop.suspended_millis == Some(300), "{stop:?}");
    assert!(detail.resumes[0].resumed_micros > stop.freed_micros, "{:?}", detail.resumes);
    let counted = |name| detail.counters.get(name);
    assert_eq!((counted("SUSPENDS"), counted("RESUMES"), counted("SUSPENDED_MILLIS")), (1, 1, 300));
    assert_eq!((counted("WORK_SAVED_MILLIS"), counted("SWAPPED_IN_BYTES")), (2_000, 100));
    assert_eq!((counted("WORK_LOST_MILLIS"), counted("NUM_KILLED_MAPS")), (0, 0));
    coordinator.stop().await;
}

#[tokio::test]
async fn a_checkpointed_task_goes_on_elsewhere_from_there() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = running(&scene).await;
    assert_eq!(coordinator.command(map, TaskCommand::Checkpoint).await, Ok(vec![map]));
    worker.checkpoints(map, 5_000).await;
    // The slot is given to one of the two maps, and the new worker gets the other.
    let mut second = Worker::join(&coordinator, "v", 1).await;
    let mut launched = [worker.restores().await, second.restores().await];
    launched.sort();
    let [(restored, from), (other, fresh)] = launched;
    assert_eq!((restored, from), (attempt(1, TaskKind::Map, 0, 2), Some(map)));
    assert_eq!((other, fresh), (attempt(1, TaskKind::Map, 1, 1), None));
    let detail = coordinator.detail(JOB).await;
    assert_eq!((detail.restores[0].from, detail.restores[0].work_saved_millis), (map, 5_000));
    let (there, else_where) = if detail.restores[0].worker == worker.id {
        (&mut worker, &mut second)
    } else {
        (&mut second, &mut worker)
    };
    there.started(restored);
    there.accounts(restored, account(Preempted::Restored, 0));
    // Checkpointed once more, it has the work of both.
    else_where.do_map(other);
    let restored_at = async {
        while coordinator.detail(JOB).await.restores[0].restored_micros.is_none() {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, restored_at).await.expect("it is accounted for");
    assert_eq!(coordinator.command(restored, TaskCommand::Checkpoint).await, Ok(vec![restored]));
    there.checkpoints(restored, 1_500).await;
    let third = attempt(1, TaskKind::Map, 0, 3);
    let again = tokio::select! { one = there.restores() => one, one = else_where.restores() => one };
    assert_eq!(again, (third, Some(restored)));
    let detail = coordinator.detail(JOB).await;
    assert_eq!(detail.restores[1].work_saved_millis, 6_500, "the work of both");
    let counted = |name| detail.counters.get(name);
    assert_eq!(
        (counted("CHECKPOINTS"), counted("CHECKPOINT_BYTES"), counted("CHECKPOINT_MILLIS")),
        (2, 100, 2)
    );
    assert_eq!((counted("CHECKPOINT_RESTORES"), counted("WORK_SAVED_MILLIS")), (1, 6_500));
    coordinator.stop().await;
}

#[tokio::test]
async fn a_checkpoint_that_cannot_be_used_is_work_lost_and_said() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = running(&scene).await;
    coordinator.command(map, TaskCommand::Checkpoint).await.expect("ordered");
    worker.checkpoints(map, 5_000).await;
    let (restored, _) = worker.restores().await;
    worker.started(restored);
    worker.accounts(restored, account(Preempted::RestoreRefused("it is damaged".to_owned()), 0));
    worker.finished(restored, None);
    let other = worker.launched().await;
    worker.do_map(other);
    ended(&scene, &coordinator, &mut worker).await;
    let detail = coordinator.detail(JOB).await;
    assert_eq!(detail.restores[0].refused.as_deref(), Some("it is damaged"));
    assert_eq!(detail.counters.get("WORK_LOST_MILLIS"), 5_000);
    let said = format!("{restored} starts from scratch: it is damaged");
    assert!(detail.events.iter().any(|event| event.text == said), "{:?}", detail.events);
    coordinator.stop().await;
}

#[tokio::test]
async fn a_kill_loses_work_and_is_no_failure() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = running(&scene).await;
    coordinator.command(map, TaskCommand::Kill).await.expect("ordered");
    assert_eq!(worker.order().await, Order::Kill { attempt: map });
    worker.accounts(map, account(Preempted::Killed, 900));
    worker.happened(map, Report::Killed);
    worker.launched().await;
    let detail = coordinator.detail(JOB).await;
    let [kill] = &detail.preemptions[..] else { panic!("{:?}", detail.preemptions) };
    assert_eq!((kill.primitive, kill.end), (Primitive::Kill, Some(PreemptionEnd::Killed)));
    assert_eq!(
        (kill.by.as_str(), kill.reason.as_str(), kill.work_lost_millis),
        ("operator", "ada asked", 900)
    );
    assert_eq!(detail.counters.get("WORK_LOST_MILLIS"), 900);
    assert_eq!(detail.counters.get("NUM_FAILED_MAPS"), 0);
    coordinator.stop().await;
}

#[tokio::test]
async fn a_suspend_that_the_worker_refuses_leaves_the_attempt_at_work() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = running(&scene).await;
    coordinator.command(map, TaskCommand::Suspend).await.expect("ordered");
    assert_eq!(worker.order().await, Order::Suspend { attempt: map });
    worker.happened(map, Report::SuspendRefused { reason: "memory is short".to_owned() });
    worker.finished(map, None);
    assert_eq!(worker.launched().await, attempt(1, TaskKind::Map, 1, 1));
    let detail = coordinator.detail(JOB).await;
    assert_eq!(detail.preemptions[0].end, Some(PreemptionEnd::Withdrawn));
    assert!(detail.preemptions[0].reason.contains("memory is short"), "{:?}", detail.preemptions);
    assert_eq!(detail.counters.get("SUSPENDS"), 0);
    coordinator.stop().await;
}

#[tokio::test]
async fn a_suspended_job_starts_nothing_until_it_is_resumed() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = running(&scene).await;
    coordinator.command_job(JOB, JobCommand::Suspend).await.expect("ordered");
    worker.suspends(map, 10).await;
    let mut other = scene.submission(2, 1, 1);
    other.plan.output = scene.path("other");
    let second = coordinator.submit(other).await;
    let its = worker.launched().await;
    assert_eq!(its.task.job, second, "the slot is nobody's of the suspended job");
    let lines = coordinator.explain(JOB, None).await;
    let lines = lines.expect("known");
    assert!(lines.iter().any(|line| line.contains("at night")), "{lines:?}");
    coordinator.command_job(JOB, JobCommand::Resume).await.expect("ordered");
    worker.do_map(its);
    worker.resumes(map, 1).await;
    worker.finished(map, None);
    let launched = [worker.launched().await, worker.launched().await];
    assert!(launched.contains(&attempt(1, TaskKind::Map, 1, 1)), "{launched:?}");
    coordinator.stop().await;
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_its_name_and_state() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = running(&scene).await;
    let waiting = attempt(1, TaskKind::Map, 1, 1);
    let unknown = attempt(1, TaskKind::Reduce, 7, 1);
    for (id, command, says) in [
        (map, TaskCommand::Resume, "cannot resume job_0001_m_0000.1: it is not suspended"),
        (waiting, TaskCommand::Suspend, "no attempt at job_0001_m_0001 is live; see: nap task list job_0001"),
        (unknown, TaskCommand::Suspend, "job_0001 has no task job_0001_r_0007"),
        (attempt(4, TaskKind::Map, 0, 1), TaskCommand::Kill, "there is no job_0004; see: nap job list"),
    ] {
        let refused = coordinator.command(id, command).await.expect_err("it makes no sense");
        assert_eq!((refused.status, refused.reason.as_str()), (2, says));
    }
    let (task, reason, command) = (map.task, String::new(), TaskCommand::Suspend);
    let refused = coordinator.command_task(task, Some(9), command, reason).await;
    assert!(refused.expect_err("no such attempt").reason.starts_with("job_0001_m_0000.9 is not live"));
    let refused = coordinator.command_job(JOB, JobCommand::Resume).await.expect_err("it is not suspended");
    assert_eq!(refused.reason, "cannot resume job_0001: it is not suspended");
    coordinator.command(map, TaskCommand::Suspend).await.expect("ordered");
    let refused = coordinator.command(map, TaskCommand::Suspend).await.expect_err("twice");
    assert!(refused.reason.contains("an operator suspended it already"), "{refused:?}");
    worker.suspends(map, 1).await;
    coordinator.stop().await;
}

#[tokio::test]
async fn kinds_that_may_not_be_suspended_or_checkpointed_say_what_else_there_is() {
    let mut scene = Scene::new();
    scene.configuration.preemption.map.suspend = false;
    scene.configuration.preemption.map.checkpoint = false;
    let (coordinator, _worker, map) = running(&scene).await;
    for (command, says) in [
        (TaskCommand::Suspend, "maps cannot be suspended here; checkpoint or kill it"),
        (TaskCommand::Checkpoint, "maps cannot be checkpointed here; suspend or kill it"),
    ] {
        let refused = coordinator.command(map, command).await.expect_err("it is not configured");
        assert!(refused.reason.contains(says), "{refused:?}");
    }
    coordinator.stop().await;
}

#[tokio::test]
async fn a_job_that_cannot_be_saved_is_refused_where_it_would_be_and_never_checkpointed_elsewhere() {
    let mut scene = Scene::new();
    let mut submission = scene.submission(1, 1, 1);
    submission.plan.checkpoint = CheckpointSupport { map: false, reduce: false };
    scene.configuration.scheduler = SchedulerConfiguration::named(SchedulerName::Natjam);
    let coordinator = scene.start();
    let handed_in = submission.clone();
    let refused = coordinator.try_submit(handed_in).await;
    let Refusal { status, reason } = refused.expect_err("natjam checkpoints reduces");
    assert!(status == 2 && reason.contains("the reducer of count may keep a state"), "{reason}");
    coordinator.stop().await;
    scene.configuration.scheduler = SchedulerConfiguration::named(SchedulerName::Fifo);
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    coordinator.submit(submission).await;
    let map = worker.launched().await;
    worker.started(map);
    let refused = coordinator.command(map, TaskCommand::Checkpoint).await.expect_err("it cannot be saved");
    let says = "the maps of its job keep a state and do not say how to save it; suspend or kill it";
    assert!(refused.reason.contains(says), "{refused:?}");
    coordinator.stop().await;
}

#[tokio::test]
async fn a_process_that_was_sent_a_stop_is_suspended_in_good_order() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = running(&scene).await;
    worker.report(WorkerReport::SuspendWanted { attempt: map });
    worker.suspends(map, 5).await;
    worker.launched().await;
    let listed = coordinator.task(map).await;
    assert!(listed.reason.expect("a reason").contains("sent SIGTSTP on worker_0001"));
    coordinator.stop().await;
}
