//! What is answered to whoever waits for what an operator has ordered.
//!
//! Owns the outcomes of commands, over what workers say. Does not own the commands themselves (`preemption`).

use napreduce_core::{AttemptId, JobId, Report};
use napreduce_protocol::{CommandOutcome, FromCoordinator, JobCommand, TaskCommand, ToCoordinator};

use super::preemption::running;
use super::{Running, Scene};

impl Running {
    async fn outcomes(
        &self,
        job: JobId,
        attempts: Vec<AttemptId>,
        command: TaskCommand,
    ) -> Vec<(AttemptId, CommandOutcome)> {
        let asked = self.asked(ToCoordinator::Outcomes { job, attempts, command }).await;
        let FromCoordinator::Outcomes(outcomes) = asked.expect("a known job") else { panic!("no outcomes") };
        outcomes
    }

    async fn outcome(&self, id: AttemptId, command: TaskCommand) -> CommandOutcome {
        let (job, attempts) = (id.task.job, vec![id]);
        let [(attempt, outcome)] = &self.outcomes(job, attempts, command).await[..] else {
            panic!("not one")
        };
        assert_eq!(*attempt, id);
        outcome.clone()
    }

    /// What workers said may still be on its way.
    async fn settled(&self, id: AttemptId, command: TaskCommand) -> CommandOutcome {
        loop {
            match self.outcome(id, command).await {
                CommandOutcome::Pending => tokio::task::yield_now().await,
                settled => return settled,
            }
        }
    }
}

#[tokio::test]
async fn a_suspend_is_pending_until_it_is_verified_and_a_resume_until_it_runs() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = running(&scene).await;
    coordinator.command(map, TaskCommand::Suspend).await.expect("ordered");
    assert_eq!(coordinator.outcome(map, TaskCommand::Suspend).await, CommandOutcome::Pending);
    worker.suspends(map, 100).await;
    assert_eq!(coordinator.settled(map, TaskCommand::Suspend).await, CommandOutcome::Done);
    // The other map has the only slot now.
    let other = worker.launched().await;
    worker.started(other);
    coordinator.command(map, TaskCommand::Resume).await.expect("ordered");
    assert_eq!(coordinator.outcome(map, TaskCommand::Resume).await, CommandOutcome::Queued);
    worker.finished(other, None);
    worker.resumes(map, 50).await;
    coordinator.until(map, "running").await;
    assert_eq!(coordinator.outcome(map, TaskCommand::Resume).await, CommandOutcome::Done);
    coordinator.stop().await;
}

#[tokio::test]
async fn a_suspend_that_is_refused_later_is_told_with_the_reason() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = running(&scene).await;
    for why in ["memory is short", "still short"] {
        coordinator.command(map, TaskCommand::Suspend).await.expect("ordered");
        assert_eq!(
            coordinator.outcome(map, TaskCommand::Suspend).await,
            CommandOutcome::Pending,
            "it is asked anew"
        );
        worker.order().await;
        worker.happened(map, Report::SuspendRefused { reason: why.to_owned() });
        let CommandOutcome::Refused(told) = coordinator.settled(map, TaskCommand::Suspend).await else {
            panic!("it was refused")
        };
        assert!(told.contains(why), "{told}");
    }
    coordinator.stop().await;
}

#[tokio::test]
async fn a_task_that_is_done_first_and_a_kill_are_told_apart() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = running(&scene).await;
    coordinator.command(map, TaskCommand::Suspend).await.expect("ordered");
    worker.order().await;
    worker.finished(map, None);
    let overtaken = CommandOutcome::Overtaken("finished".to_owned());
    assert_eq!(coordinator.settled(map, TaskCommand::Suspend).await, overtaken);
    let other = worker.launched().await;
    worker.started(other);
    coordinator.until(other, "running").await;
    coordinator.command(other, TaskCommand::Checkpoint).await.expect("ordered");
    worker.checkpoints(other, 10).await;
    assert_eq!(coordinator.settled(other, TaskCommand::Checkpoint).await, CommandOutcome::Done);
    let again = worker.launched().await;
    worker.started(again);
    coordinator.until(again, "running").await;
    coordinator.command(again, TaskCommand::Kill).await.expect("ordered");
    assert_eq!(coordinator.outcome(again, TaskCommand::Kill).await, CommandOutcome::Pending);
    worker.order().await;
    worker.happened(again, Report::Killed);
    assert_eq!(coordinator.settled(again, TaskCommand::Kill).await, CommandOutcome::Done);
    coordinator.stop().await;
}

#[tokio::test]
async fn a_whole_job_is_suspended_when_all_that_is_live_of_it_is() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = running(&scene).await;
    let job = map.task.job;
    coordinator.command_job(job, JobCommand::Suspend).await.expect("ordered");
    let all = || coordinator.outcomes(job, Vec::new(), TaskCommand::Suspend);
    assert_eq!(all().await, [(map, CommandOutcome::Pending)]);
    worker.suspends(map, 100).await;
    coordinator.until(map, "suspended").await;
    assert_eq!(all().await, [(map, CommandOutcome::Done)]);
    coordinator.stop().await;
}
