//! Which primitives a configured policy may ask for, before it has asked for any.
//!
//! Owns what follows from its wishes and the settings, for whoever must know it when a job is submitted. Does
//! not own what becomes of a wish (the engine's settings).

use napreduce_engine::{Converted, PreemptionSettings, Primitive, PrimitiveChoice, TaskKind};

use crate::tables::Wish;

/// What has tasks of a kind checkpointed, sooner or later, under these settings: named as in the
/// configuration file. Nothing, when they never are.
pub fn checkpoints(kind: TaskKind, wishes: &[Wish], settings: &PreemptionSettings) -> Option<&'static str> {
    if !settings.of(kind).checkpoint {
        return None;
    }
    let wanted = match settings.primitive {
        Some(PrimitiveChoice::Checkpoint) if !wishes.is_empty() => Some("[preemption] primitive"),
        Some(_) => None,
        None => wishes.iter().find(|(_, primitive)| *primitive == Primitive::Checkpoint).map(|(of, _)| *of),
    };
    let suspends = wishes.iter().any(|(_, primitive)| {
        let used = settings.primitive.unwrap_or(PrimitiveChoice::from(*primitive));
        matches!(used, PrimitiveChoice::Suspend | PrimitiveChoice::Auto) && settings.of(kind).suspend
    });
    let converts = settings.convert.is_some_and(|rule| rule.to == Converted::Checkpoint) && suspends;
    wanted.or(converts.then_some("[preemption.convert]"))
}
