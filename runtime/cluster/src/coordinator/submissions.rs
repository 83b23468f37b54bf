//! Submissions: a job with the token of an earlier one is that job; otherwise the job is checked against queues,
//! preemption rules and policy, and its output directory is claimed.

use napreduce_engine::{JobId, PolicyChoice, PreemptionSettings, TaskKind};
use napreduce_local::coordinator::{Accepted, Submitter, spec_of};
use napreduce_local::output::ClaimMark;
use napreduce_local::world::{Situation, reached};
use napreduce_protocol::{JobPlan, Submission};

use super::ClusterCoordinator;
use super::refusal::Refusal;
use super::requests::{HandleLater, Reply};

impl HandleLater for Submission {
    fn handle_later(self, coordinator: &mut ClusterCoordinator, reply: Reply<JobId>) {
        let token = self.token;
        if let Some(job) = coordinator.job_of_token(token) {
            reached(Situation::SubmissionRepeated);
            return reply.send(Ok(job));
        }
        let rerun_of = self.rerun_of.as_ref().map(|rerun| rerun.job);
        if coordinator.local.is_claiming_for(token) {
            reached(Situation::SubmissionJoined);
            let submitter = submitting_client(reply, rerun_of);
            return coordinator.local.join_submission(token, submitter);
        }
        if let Err(refusal) = coordinator.admit(&self.plan, &self.user) {
            return reply.send(Err(refusal));
        }
        let accepted = Accepted {
            job: coordinator.local.next_job(),
            token,
            plan: self.plan,
            user: self.user,
            program: Some(self.program),
            files: self.files,
            claim: ClaimMark::default(),
            rerun_of: self.rerun_of,
        };
        let submitter = submitting_client(reply, rerun_of);
        coordinator.local.claim(accepted, submitter);
    }
}

/// Returns a submitter that passes the result of the submission on to the client.
fn submitting_client(reply: Reply<JobId>, rerun_of: Option<JobId>) -> Submitter {
    Submitter::Client(Box::new(move |submitted| {
        let answer = submitted.map_err(|error| match rerun_of {
            Some(job) => Refusal::from_rerun_error(job, error),
            None => Refusal::from_job_error(error),
        });
        reply.send(answer);
    }))
}

impl ClusterCoordinator {
    /// Returns the job that was submitted with this token.
    fn job_of_token(&self, token: u128) -> Option<JobId> {
        for job in self.local.state().jobs().values() {
            if job.accepted.token == token {
                return Some(job.id());
            }
        }
        self.history.of_token(token)
    }

    /// Fails if the job cannot be checkpointed as the rules require, its queue is unknown, or the policy
    /// rejects it.
    fn admit(&self, plan: &JobPlan, user: &str) -> Result<(), Refusal> {
        self.check_queue(&plan.queue)?;
        let configuration = &self.configuration;
        check_saved_state(&*configuration.scheduler, &configuration.preemption, plan)
            .map_err(Refusal::wrong)?;
        let now = self.local.entry_time();
        let engine = self.local.state().engine();
        engine.can_meet(now, &spec_of(plan, user, now))?;
        Ok(())
    }

    /// Checks that jobs may use a queue of this name.
    pub(super) fn check_queue(&self, queue: &str) -> Result<(), Refusal> {
        let configuration = &self.configuration;
        check_queue_name(&*configuration.scheduler, &configuration.queues, queue)
            .map_err(Refusal::wrong)
    }
}

/// Rejects unknown queue names. A policy without a list of queues accepts any name.
fn check_queue_name(
    scheduler: &dyn PolicyChoice,
    configured_queues: &[String],
    queue: &str,
) -> Result<(), String> {
    let Some(policy_queues) = scheduler.queues() else {
        return Ok(());
    };
    let mut known = vec![JobPlan::QUEUE_DEFAULT];
    known.extend(policy_queues);
    known.extend(configured_queues.iter().map(String::as_str));
    if known.contains(&queue) {
        return Ok(());
    }
    known.sort_unstable();
    known.dedup();
    Err(format!(
        "unknown queue {queue}: the scheduler {} has {}; omit --queue, or have the operator add it to \
         [coordinator] queues",
        scheduler.name(),
        known.join(", ")
    ))
}

/// Rejects a job whose tasks the policy would checkpoint although they do not save their state.
fn check_saved_state(
    scheduler: &dyn PolicyChoice,
    preemption: &PreemptionSettings,
    plan: &JobPlan,
) -> Result<(), String> {
    for kind in plan.unsaved() {
        if let Some(why) = scheduler.checkpoints(kind, &plan.name, preemption) {
            return Err(unsaved_state(kind, plan, why));
        }
    }
    Ok(())
}

fn unsaved_state(kind: TaskKind, plan: &JobPlan, why: &str) -> String {
    let name = &plan.name;
    let code = match kind {
        TaskKind::Map => "mapper",
        TaskKind::Reduce => "reducer",
    };
    format!(
        "this cluster checkpoints {kind}s ({why}), but the {code} of {name} does not save its state; derive \
         Resumable for it and call {code}_resumable, implement `save` and `restore`, or return Save::Stateless from \
         `save` if it has no state, or change the cluster's preemption: [preemption] {kind} = \
         {{ checkpoint = false, otherwise = \"wait\" }}"
    )
}

#[cfg(test)]
mod tests {
    use napreduce_engine::Ratio;
    use napreduce_protocol::CheckpointSupport;
    use napreduce_schedulers::capacity::QueueConfiguration;
    use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};

    use super::*;

    fn check_under(scheduler: SchedulerName, map: bool, reduce: bool) -> Result<(), String> {
        let scheduler = SchedulerConfiguration::named(scheduler);
        let mut plan = JobPlan::new("count", "/out");
        plan.checkpoint = CheckpointSupport { map, reduce };
        check_saved_state(&scheduler, &PreemptionSettings::default(), &plan)
    }

    #[test]
    fn only_checkpointed_kinds_require_save() {
        assert_eq!(check_under(SchedulerName::Fifo, false, false), Ok(()));
        assert_eq!(
            check_under(SchedulerName::Natjam, false, true),
            Ok(()),
            "it takes no map slots"
        );
        let refused =
            check_under(SchedulerName::Natjam, true, false).expect_err("it takes reduce slots");
        assert!(
            refused.starts_with(
                "this cluster checkpoints reduces ([scheduler.natjam] primitive), but the reducer of count "
            ),
            "{refused}"
        );
        assert!(
            refused.contains("reduce = { checkpoint = false, otherwise = \"wait\" }"),
            "{refused}"
        );
    }

    #[test]
    fn unknown_queue_is_refused_with_known_ones() {
        let named = SchedulerConfiguration::named;
        let more = ["nightly".to_owned()];
        for scheduler in [
            SchedulerName::Fifo,
            SchedulerName::Fcs,
            SchedulerName::Trigger,
        ] {
            assert_eq!(check_queue_name(&named(scheduler), &[], "default"), Ok(()));
            assert_eq!(
                check_queue_name(&named(scheduler), &more, "nightly"),
                Ok(())
            );
            let error =
                check_queue_name(&named(scheduler), &more, "prod").expect_err("no such queue");
            let expected =
                format!("unknown queue prod: the scheduler {scheduler} has default, nightly; ");
            assert!(error.starts_with(&expected), "{error}");
        }
        let mut hfsp = named(SchedulerName::Hfsp);
        hfsp.tables.hfsp.weights.insert("etl".to_owned(), 3);
        assert_eq!(check_queue_name(&hfsp, &[], "etl"), Ok(()));
        let error = check_queue_name(&hfsp, &[], "elt").expect_err("no such queue");
        assert!(error.contains("has default, etl;"), "{error}");
        assert_eq!(
            check_queue_name(&named(SchedulerName::Natjam), &[], "whatever"),
            Ok(())
        );
        let mut capacity = named(SchedulerName::Capacity);
        assert_eq!(check_queue_name(&capacity, &[], "default"), Ok(()));
        let etl = QueueConfiguration::new("etl", Ratio::whole(100));
        let part = |name: &str| QueueConfiguration {
            parent: "etl".to_owned(),
            ..QueueConfiguration::new(name, Ratio::whole(50))
        };
        capacity.tables.capacity.queue = vec![etl, part("daily"), part("weekly")];
        assert_eq!(check_queue_name(&capacity, &more, "nightly"), Ok(()));
        assert_eq!(check_queue_name(&capacity, &[], "weekly"), Ok(()));
        for wrong in ["typo", "etl"] {
            let error = check_queue_name(&capacity, &[], wrong).expect_err("it takes no jobs");
            assert!(error.contains("has daily, default, weekly;"), "{error}");
        }
    }

    #[test]
    fn job_without_reduces_needs_no_save() {
        let mut plan = JobPlan::new("copy", "/out");
        plan.reduces = 0;
        plan.checkpoint = CheckpointSupport {
            map: true,
            reduce: false,
        };
        assert_eq!(plan.unsaved(), []);
    }
}
