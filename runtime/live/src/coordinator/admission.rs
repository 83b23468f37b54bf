//! Which jobs a cluster takes: none whose work it would have to save and whose code cannot.
//!
//! Owns the refusal and its text. Does not own which policy asks for what (`napreduce_core`) nor what a job's code can save
//! (the framework, which says so in the plan).

use napreduce_core::TaskKind;

use super::daemon::Coordinator;
use super::requests::Refusal;
use crate::journal::EngineRules;
use crate::plan::JobPlan;

impl Coordinator {
    /// Refuses a job that the rules would have checkpointed and that cannot be. An embedded one is asked by nobody.
    pub(super) fn admit(&self, plan: &JobPlan) -> Result<(), Refusal> {
        match &self.lasting {
            Some(lasting) => check(&lasting.journal.header().rules, plan).map_err(Refusal::wrong),
            None => Ok(()),
        }
    }
}

fn check(rules: &EngineRules, plan: &JobPlan) -> Result<(), String> {
    for kind in plan.unsaved() {
        let settings = &rules.settings.preemption;
        if let Some(why) = rules.scheduler.checkpoints(kind, &plan.name, settings) {
            return Err(refusal(kind, plan, why));
        }
    }
    Ok(())
}

fn refusal(kind: TaskKind, plan: &JobPlan, why: &str) -> String {
    let name = &plan.name;
    let code = match kind {
        TaskKind::Map => "mapper",
        TaskKind::Reduce => "reducer",
    };
    format!(
        "this cluster checkpoints {kind}s ({why}), and the {code} of {name} may keep a state that it does not save; implement \
         `save` and `restore` for it, or have `save` answer Save::Stateless if it keeps none, or let the cluster do something \
         else: [preemption] {kind} = {{ checkpoint = false, otherwise = \"wait\" }}"
    )
}

#[cfg(test)]
mod tests {
    use napreduce_core::{EngineSettings, SchedulerConfiguration, SchedulerName};

    use super::*;
    use crate::plan::CheckpointSupport;

    fn check_under(scheduler: SchedulerName, map: bool, reduce: bool) -> Result<(), String> {
        let (settings, scheduler) = (EngineSettings::default(), SchedulerConfiguration::named(scheduler));
        let mut plan = JobPlan::new("count", "/out");
        plan.checkpoint = CheckpointSupport { map, reduce };
        check(&EngineRules { settings, scheduler }, &plan)
    }

    #[test]
    fn only_what_would_be_checkpointed_must_be_saved() {
        assert_eq!(check_under(SchedulerName::Fifo, false, false), Ok(()));
        assert_eq!(check_under(SchedulerName::Natjam, false, true), Ok(()), "it takes no map slots");
        let refused = check_under(SchedulerName::Natjam, true, false).expect_err("it takes reduce slots");
        assert!(
            refused.starts_with(
                "this cluster checkpoints reduces ([scheduler.natjam] primitive), and the reducer of count "
            ),
            "{refused}"
        );
        assert!(refused.contains("reduce = { checkpoint = false, otherwise = \"wait\" }"), "{refused}");
    }

    #[test]
    fn a_job_without_reduces_need_save_none() {
        let mut plan = JobPlan::new("copy", "/out");
        plan.reduces = 0;
        plan.checkpoint = CheckpointSupport { map: true, reduce: false };
        assert_eq!(plan.unsaved(), []);
    }
}
