//! The map of a job without reduce, and closures as such maps.

use std::sync::Arc;

use napreduce_protocol::TaskError;
use napreduce_task::SuspendHooks;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::input::InputFormat;
use crate::output::{Output, OutputFormat};
use crate::state::Save;

use super::outcome::{Outcome, about_record};
use super::resumable::{restore_serde, save_serde};
use super::task_info::TaskInfo;

/// A map that writes a part file. Every attempt works on its own clone.
pub(crate) trait PartMap<I: InputFormat, O: OutputFormat>:
    SuspendHooks + Clone + Send + Sync + 'static
{
    /// Called once before the first record of an attempt.
    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        let _ = task;
        Ok(())
    }

    /// Called for each record.
    fn map(&mut self, record: I::Record<'_>, out: &mut Output<O>) -> Result<(), TaskError>;

    /// As [`Mapper::flush`](crate::Mapper::flush).
    fn flush(&mut self, out: &mut Output<O>) -> Result<(), TaskError> {
        let _ = out;
        Ok(())
    }

    /// As [`Mapper::save`](crate::Mapper::save).
    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError>;

    /// As [`Mapper::restore`](crate::Mapper::restore); not called if the map is stateless.
    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let _ = state;
        Err(TaskError::task("this map has no state to restore"))
    }

    /// As [`Mapper::has_suspend_hooks`](crate::Mapper::has_suspend_hooks).
    fn has_suspend_hooks(&self) -> bool {
        true
    }

    /// Called once after the last record.
    fn finish(&mut self, out: &mut Output<O>) -> Result<(), TaskError> {
        let _ = out;
        Ok(())
    }
}

/// A closure without state or hooks.
pub(crate) struct PartClosure<F>(Arc<F>);

impl<F> PartClosure<F> {
    pub(crate) fn new(closure: F) -> PartClosure<F> {
        PartClosure(Arc::new(closure))
    }
}

impl<F> Clone for PartClosure<F> {
    fn clone(&self) -> PartClosure<F> {
        PartClosure(Arc::clone(&self.0))
    }
}

impl<I, O, F, R> PartMap<I, O> for PartClosure<F>
where
    I: InputFormat,
    O: OutputFormat,
    F: Fn(I::Record<'_>, &mut Output<O>) -> R + Send + Sync + 'static,
    R: Outcome,
{
    #[inline(always)]
    fn map(&mut self, record: I::Record<'_>, out: &mut Output<O>) -> Result<(), TaskError> {
        (self.0)(record, out)
            .outcome()
            .map_err(|error| about_record(error, out.place()))
    }

    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Stateless)
    }

    fn has_suspend_hooks(&self) -> bool {
        false
    }
}

/// A closure with a state, which is saved by its serde type.
pub(crate) struct ResumablePartClosure<S, F> {
    closure: Arc<F>,
    state: S,
}

impl<S, F> ResumablePartClosure<S, F> {
    pub(crate) fn new(start: S, closure: F) -> Self {
        ResumablePartClosure {
            closure: Arc::new(closure),
            state: start,
        }
    }
}

impl<S: Clone, F> Clone for ResumablePartClosure<S, F> {
    fn clone(&self) -> Self {
        ResumablePartClosure {
            closure: Arc::clone(&self.closure),
            state: self.state.clone(),
        }
    }
}

impl<I, O, S, F, R> PartMap<I, O> for ResumablePartClosure<S, F>
where
    I: InputFormat,
    O: OutputFormat,
    S: Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
    F: Fn(&mut S, I::Record<'_>, &mut Output<O>) -> R + Send + Sync + 'static,
    R: Outcome,
{
    #[inline(always)]
    fn map(&mut self, record: I::Record<'_>, out: &mut Output<O>) -> Result<(), TaskError> {
        let outcome = (self.closure)(&mut self.state, record, out).outcome();
        outcome.map_err(|error| about_record(error, out.place()))
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        save_serde(&self.state, state)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.state = restore_serde(state)?;
        Ok(())
    }

    fn has_suspend_hooks(&self) -> bool {
        false
    }
}

impl<S, F> SuspendHooks for ResumablePartClosure<S, F> {}

impl<F> SuspendHooks for PartClosure<F> {}
