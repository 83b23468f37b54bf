//! The measured costs of taking slots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::by_kind::ByKind;
use crate::cluster::by_bytes::ByBytes;
use crate::ids::TaskKind;
use crate::preemption::{CostEstimate, Primitive};
use crate::primitive_choice::{AutoSettings, Judged};
use crate::settings::CostRule;
use crate::time::Span;

/// The measured costs of taking a slot and giving it back, for tasks of one kind, smoothed: one quarter the
/// new value and three quarters the old one. `None` until the first measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredCosts {
    /// From the order to suspend to the free slot.
    pub suspend: Option<Span>,
    /// From the order to resume to resumed work.
    pub resume: Option<Span>,
    /// From the order to checkpoint to the free slot.
    pub checkpoint: Option<Span>,
    /// From the order to launch from a checkpoint to resumed work.
    pub restore: Option<Span>,
    /// From the order to kill to the free slot.
    #[serde(default)]
    pub kill: Option<Span>,
    /// Checkpoint and restore times by the memory that the tasks need.
    #[serde(default)]
    pub checkpoint_by_bytes: ByBytes,
    #[serde(default)]
    pub restore_by_bytes: ByBytes,
    /// The primitives that were chosen by cost before.
    #[serde(default)]
    pub tried: TriedPrimitives,
    /// From the order to launch from the beginning to the first work.
    #[serde(default)]
    pub launch: Option<Span>,
}

/// Primitives that keep work and were chosen by cost for tasks of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedPrimitives {
    pub suspend: bool,
    pub checkpoint: bool,
}

/// How long a primitive takes to free a slot, and then to continue the work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrimitiveCost {
    pub free: Span,
    pub resume: Span,
}

impl MeasuredCosts {
    /// Returns the cost of a primitive: the values of the rule, or the measurements if the rule prefers them and
    /// there are any.
    pub(crate) fn by_rule(&self, rule: CostRule, primitive: Primitive) -> PrimitiveCost {
        let assumed = PrimitiveCost {
            free: rule.suspend,
            resume: rule.resume,
        };
        if !rule.measured {
            return assumed;
        }
        match primitive {
            Primitive::Suspend => PrimitiveCost {
                free: self.suspend.unwrap_or(assumed.free),
                resume: self.resume.unwrap_or(assumed.resume),
            },
            Primitive::Checkpoint => PrimitiveCost {
                free: self.checkpoint.unwrap_or(assumed.free),
                resume: self.restore.unwrap_or(assumed.resume),
            },
            Primitive::Wait | Primitive::Kill => assumed,
        }
    }

    /// Returns the expected time to save the work of a task that needs this many bytes of memory.
    pub(crate) fn expected_checkpoint(&self, bytes: u64, assumed: &AutoSettings) -> Span {
        let known = self.checkpoint_by_bytes.of(bytes);
        known.unwrap_or(assumed.checkpoint)
    }

    /// Returns the expected time to restore such a task from its checkpoint; before any measurement, more than a
    /// fresh start takes.
    pub(crate) fn expected_restore(&self, bytes: u64, assumed: &AutoSettings) -> Span {
        let known = self.restore_by_bytes.of(bytes);
        let launch = self.launch.unwrap_or_default();
        known.unwrap_or(assumed.restore + launch)
    }

    /// Returns whether this way to keep work was never chosen by cost. Untried primitives are tried once, because
    /// they would otherwise never be measured.
    pub(crate) fn is_untried(&self, primitive: Primitive) -> bool {
        match primitive {
            Primitive::Suspend => !self.tried.suspend,
            Primitive::Checkpoint => !self.tried.checkpoint,
            Primitive::Wait | Primitive::Kill => false,
        }
    }
}

/// The measured costs of taking slots, and how well they predicted those of chosen primitives.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    measured: ByKind<MeasuredCosts>,
    judged: BTreeMap<Primitive, Judged>,
}

impl Costs {
    pub fn new(measured: ByKind<MeasuredCosts>, judged: BTreeMap<Primitive, Judged>) -> Costs {
        Costs { measured, judged }
    }

    pub fn measured(&self) -> &ByKind<MeasuredCosts> {
        &self.measured
    }

    /// Returns the estimated and actual costs of primitives that were chosen by cost.
    pub fn judged(&self) -> &BTreeMap<Primitive, Judged> {
        &self.judged
    }

    pub fn add_suspend(&mut self, kind: TaskKind, took: Span) {
        smooth(&mut self.measured[kind].suspend, took);
    }

    pub fn add_resume(&mut self, kind: TaskKind, took: Span) {
        smooth(&mut self.measured[kind].resume, took);
        self.add_return(Primitive::Suspend, took);
    }

    /// Adds the time to checkpoint a task that needs this many bytes of memory.
    pub fn add_checkpoint(&mut self, kind: TaskKind, bytes: u64, took: Span) {
        smooth(&mut self.measured[kind].checkpoint, took);
        self.measured[kind].checkpoint_by_bytes.learn(bytes, took);
    }

    /// Adds the time to restore a task that needs this many bytes of memory.
    pub fn add_restore(&mut self, kind: TaskKind, bytes: u64, took: Span) {
        smooth(&mut self.measured[kind].restore, took);
        self.measured[kind].restore_by_bytes.learn(bytes, took);
        self.add_return(Primitive::Checkpoint, took);
    }

    pub fn add_launch(&mut self, kind: TaskKind, took: Span) {
        smooth(&mut self.measured[kind].launch, took);
    }

    pub fn add_kill(&mut self, kind: TaskKind, took: Span) {
        smooth(&mut self.measured[kind].kill, took);
    }

    /// Records that a primitive was chosen by cost.
    pub fn add_choice(&mut self, kind: TaskKind, primitive: Primitive) {
        let tried = &mut self.measured[kind].tried;
        match primitive {
            Primitive::Suspend => tried.suspend = true,
            Primitive::Checkpoint => tried.checkpoint = true,
            Primitive::Wait | Primitive::Kill => {}
        }
    }

    /// Compares an estimate with a slot that became free after `took` and cost its victim the work time `lost`.
    pub fn judge(&mut self, estimate: CostEstimate, took: Span, lost: Span) {
        let judged = self.judged.entry(estimate.primitive).or_default();
        judged.slots += 1;
        judged.free_estimated = judged.free_estimated + estimate.free;
        judged.free = judged.free + took;
        judged.victim_estimated = judged.victim_estimated + estimate.victim;
        judged.victim = judged.victim + lost;
    }

    /// Adds the time until a victim continued its work.
    fn add_return(&mut self, primitive: Primitive, took: Span) {
        if let Some(judged) = self.judged.get_mut(&primitive) {
            judged.victim = judged.victim + took;
        }
    }
}

/// Adds a measurement to a smoothed value.
fn smooth(known: &mut Option<Span>, took: Span) {
    let old = known.unwrap_or(took);
    *known = Some(Span(old.0 - old.0 / 4 + took.0 / 4));
}
