//! Which primitives a configured policy may ask for, before it has asked for any.
//!
//! Owns what follows from the tables alone, for whoever must know it when a job is submitted. Does not own what becomes of
//! a wish (the engine's settings).

use napreduce_core::{Converted, PreemptionSettings, Primitive, TaskKind};

use crate::capacity::Mode;
use crate::trigger::{Deed, read_rules};
use crate::{SchedulerConfiguration, SchedulerName, SchedulerTables};

impl SchedulerConfiguration {
    /// What has tasks of a kind of a job of this name checkpointed, sooner or later, under these settings: named as in the
    /// configuration file. Nothing, when they never are.
    pub fn checkpoints(
        &self,
        kind: TaskKind,
        job: &str,
        settings: &PreemptionSettings,
    ) -> Option<&'static str> {
        if !settings.of(kind).checkpoint {
            return None;
        }
        let wishes = self.tables.wishes(self.scheduler, kind, job);
        let wanted = match settings.primitive {
            Some(Primitive::Checkpoint) if !wishes.is_empty() => Some("[preemption] primitive"),
            Some(_) => None,
            None => {
                wishes.iter().find(|(_, primitive)| *primitive == Primitive::Checkpoint).map(|(of, _)| *of)
            }
        };
        let suspends = wishes.iter().any(|(_, primitive)| {
            settings.primitive.unwrap_or(*primitive) == Primitive::Suspend && settings.of(kind).suspend
        });
        let converts = settings.convert.is_some_and(|rule| rule.to == Converted::Checkpoint) && suspends;
        wanted.or(converts.then_some("[preemption.convert]"))
    }
}

impl SchedulerTables {
    /// How a policy takes slots of a kind back, if it does, and where that is said.
    fn wishes(&self, name: SchedulerName, kind: TaskKind, job: &str) -> Vec<(&'static str, Primitive)> {
        let maps = kind == TaskKind::Map;
        let if_some =
            |does: bool, of: &'static str, primitive| Vec::from_iter(does.then_some((of, primitive)));
        match name {
            SchedulerName::Fifo => Vec::new(),
            SchedulerName::Fair => {
                if_some(self.fair.preemption, "[scheduler.fair] primitive", self.fair.primitive)
            }
            SchedulerName::Capacity => match self.capacity.mode {
                Mode::Preemptive => self.monitor_wishes(),
                Mode::HardCap | Mode::SoftCap => Vec::new(),
            },
            SchedulerName::Natjam => {
                let does = !maps || self.natjam.preempt_maps;
                if_some(does, "[scheduler.natjam] primitive", self.natjam.primitive)
            }
            SchedulerName::NatjamDeadline => {
                let does = !maps || self.natjam_deadline.preempt_maps;
                if_some(does, "[scheduler.natjam-deadline] primitive", self.natjam_deadline.primitive)
            }
            SchedulerName::Fcs if maps => self.wishes(self.fcs.maps, kind, job),
            SchedulerName::Fcs => if_some(true, "[scheduler.fcs] primitive", self.fcs.primitive),
            SchedulerName::Hfsp => if_some(true, "[scheduler.hfsp] primitive", self.hfsp.primitive),
            SchedulerName::Trigger => self.rule_wishes(kind, job),
            SchedulerName::Composed => {
                let part = if maps { self.composed.map } else { self.composed.reduce };
                // A part that is composed itself is refused when it is built.
                let mut wishes = match (part, maps) {
                    (SchedulerName::Composed, _) | (SchedulerName::Fcs, true) => Vec::new(),
                    _ => self.wishes(part, kind, job),
                };
                if self.composed.monitor {
                    wishes.extend(self.monitor_wishes());
                }
                wishes
            }
        }
    }

    fn monitor_wishes(&self) -> Vec<(&'static str, Primitive)> {
        let monitor = &self.capacity.monitor;
        let wish = ("[scheduler.capacity.monitor] primitive", monitor.primitive);
        Vec::from_iter((!monitor.observe_only).then_some(wish))
    }

    /// What the rules do to a job of this name. Rules that cannot be read are refused when the policy is built.
    fn rule_wishes(&self, kind: TaskKind, job: &str) -> Vec<(&'static str, Primitive)> {
        let rules = read_rules(&self.trigger.rules).unwrap_or_default();
        let deeds = rules.iter().flat_map(|rule| &rule.actions);
        let wish = |deed: &Deed| {
            let (target, primitive) = match deed {
                Deed::Suspend(target) => (target, Primitive::Suspend),
                Deed::Kill(target) => (target, Primitive::Kill),
                Deed::Checkpoint(target) => (target, Primitive::Checkpoint),
                _ => return None,
            };
            let meant = target.job == job && target.task.is_none_or(|(of, _)| of == kind);
            meant.then_some(("[scheduler.trigger] rules", primitive))
        };
        deeds.filter_map(wish).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use napreduce_core::Span;
    use napreduce_core::{Conversion, KindPreemption};

    fn tables(change: impl FnOnce(&mut SchedulerTables)) -> SchedulerTables {
        let mut tables = SchedulerTables::default();
        change(&mut tables);
        tables
    }

    #[test]
    fn a_policy_checkpoints_what_its_table_says() {
        let none = PreemptionSettings::default();
        let name = SchedulerConfiguration::named;
        let natjam = Some("[scheduler.natjam] primitive");
        for (configuration, maps, reduces) in [
            (name(SchedulerName::Fifo), None, None),
            (name(SchedulerName::Fair), None, None),
            (name(SchedulerName::Hfsp), None, None),
            (name(SchedulerName::Natjam), None, natjam),
            (name(SchedulerName::Fcs), None, Some("[scheduler.fcs] primitive")),
            (
                SchedulerConfiguration {
                    scheduler: SchedulerName::Natjam,
                    tables: tables(|tables| tables.natjam.preempt_maps = true),
                },
                natjam,
                natjam,
            ),
            (
                SchedulerConfiguration {
                    scheduler: SchedulerName::Composed,
                    tables: tables(|tables| tables.composed.reduce = SchedulerName::Natjam),
                },
                None,
                natjam,
            ),
        ] {
            let of = |kind| configuration.checkpoints(kind, "job", &none);
            let scheduler = configuration.scheduler;
            assert_eq!((of(TaskKind::Map), of(TaskKind::Reduce)), (maps, reduces), "{scheduler}");
        }
    }

    #[test]
    fn rules_checkpoint_the_jobs_they_name() {
        let rules = "when started(a) do checkpoint(a/r0)".to_owned();
        let configuration = SchedulerConfiguration {
            scheduler: SchedulerName::Trigger,
            tables: tables(|tables| tables.trigger.rules = rules),
        };
        let of = |kind, job| configuration.checkpoints(kind, job, &PreemptionSettings::default());
        assert_eq!(of(TaskKind::Reduce, "a"), Some("[scheduler.trigger] rules"));
        assert_eq!((of(TaskKind::Map, "a"), of(TaskKind::Reduce, "b")), (None, None));
    }

    #[test]
    fn the_settings_have_the_last_word() {
        let with = |change: &dyn Fn(&mut PreemptionSettings)| {
            let mut settings = PreemptionSettings::default();
            change(&mut settings);
            let of = |scheduler| {
                SchedulerConfiguration::named(scheduler).checkpoints(TaskKind::Reduce, "job", &settings)
            };
            (of(SchedulerName::Natjam), of(SchedulerName::Hfsp), of(SchedulerName::Fifo))
        };
        let everywhere = Some("[preemption] primitive");
        assert_eq!(
            with(&|settings| settings.primitive = Some(Primitive::Checkpoint)),
            (everywhere, everywhere, None)
        );
        assert_eq!(with(&|settings| settings.primitive = Some(Primitive::Kill)), (None, None, None));
        let never = KindPreemption { checkpoint: false, ..KindPreemption::default() };
        assert_eq!(with(&|settings| settings.reduce = never), (None, None, None));
        let convert = Conversion { after: Span::from_secs(1), to: Converted::Checkpoint };
        let (natjam, hfsp, fifo) = with(&|settings| settings.convert = Some(convert));
        assert_eq!((natjam.is_some(), hfsp, fifo), (true, Some("[preemption.convert]"), None));
    }
}
