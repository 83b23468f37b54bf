//! The map of a job without reduce: what it is asked, and closures as such.
//!
//! Owns how it is called per task and per record. Does not own the part file it writes to (`output`).

use std::sync::Arc;

use napreduce_live::{SuspendHooks, TaskError};

use crate::input::InputFormat;
use crate::output::{Output, OutputFormat};
use crate::state::Save;

use super::task_info::TaskInfo;

/// Writes a part file. Every attempt works on its own clone.
pub(crate) trait PartMap<I: InputFormat, O: OutputFormat>:
    SuspendHooks + Clone + Send + Sync + 'static
{
    /// Called once before the first record of an attempt.
    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError>;

    /// Called for each record.
    fn map(&mut self, record: I::Record<'_>, out: &mut Output<O>) -> Result<(), TaskError>;

    /// Whether it keeps a state from one record to the next; none can be saved.
    fn save(&self) -> Save;

    /// Called once after the last record.
    fn finish(&mut self, out: &mut Output<O>) -> Result<(), TaskError>;
}

/// A closure, which keeps nothing and has no hooks.
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

impl<I, O, F> PartMap<I, O> for PartClosure<F>
where
    I: InputFormat,
    O: OutputFormat,
    F: Fn(I::Record<'_>, &mut Output<O>) -> Result<(), TaskError> + Send + Sync + 'static,
{
    fn setup(&mut self, _: &TaskInfo<'_>) -> Result<(), TaskError> {
        Ok(())
    }

    #[inline(always)]
    fn map(&mut self, record: I::Record<'_>, out: &mut Output<O>) -> Result<(), TaskError> {
        (self.0)(record, out)
    }

    fn save(&self) -> Save {
        Save::Stateless
    }

    fn finish(&mut self, _: &mut Output<O>) -> Result<(), TaskError> {
        Ok(())
    }
}

impl<F> SuspendHooks for PartClosure<F> {
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        Ok(())
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        Ok(())
    }
}
