//! The `Reducer` trait, and closures as reducers.

use std::marker::PhantomData;
use std::sync::Arc;

use napreduce_protocol::TaskError;

use crate::codec::{Key, Value};
use crate::output::{Output, OutputFormat};
use crate::state::Save;
use crate::values::Values;

use super::outcome::Outcome;
use super::task_info::TaskInfo;

/// A reduce with state. A closure passed to `reduce` is the simple form.
///
/// Every attempt works on its own clone, so state never passes from one attempt to another. Groups arrive in
/// key order within a partition.
///
/// ```
/// use napreduce::output::Text;
/// use napreduce::{Emit, Job, Output, Reducer, Save, TaskError, Values};
///
/// /// Numbers the distinct words of each partition.
/// #[derive(Clone, Default)]
/// struct Numbered(u64);
///
/// impl Reducer for Numbered {
///     type Group = String;
///     type Key = String;
///     type Value = ();
///     type Output = Text;
///
///     fn reduce(
///         &mut self,
///         word: &str,
///         _: &mut Values<'_, String, ()>,
///         out: &mut Output<Text>,
///     ) -> Result<(), TaskError> {
///         self.0 += 1;
///         out.emit(self.0, word);
///         Ok(())
///     }
///
///     // With these two methods a task can be checkpointed and continue on another worker.
///     fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
///         state.extend_from_slice(&self.0.to_le_bytes());
///         Ok(Save::Saved)
///     }
///
///     fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
///         let bytes = state.try_into().map_err(|_| TaskError::task("a saved state of another length"))?;
///         self.0 = u64::from_le_bytes(bytes);
///         Ok(())
///     }
/// }
///
/// let job = Job::text()
///     .map(|line: &str, out: &mut Emit<String, ()>| out.emit(line, ()))
///     .reducer(Numbered::default());
/// # let _ = job;
/// ```
pub trait Reducer: Clone + Send + Sync + 'static {
    /// The group: the key type, or a prefix of it chosen with `group_by`.
    type Group: Key;
    /// The full key type that the map emits.
    type Key: Key;
    /// The value type that the map emits.
    type Value: Value;
    /// The output format it writes.
    type Output: OutputFormat;

    /// Called once before the first group of an attempt; may already write.
    fn setup(&mut self, task: &TaskInfo, out: &mut Output<Self::Output>) -> Result<(), TaskError> {
        let _ = (task, out);
        Ok(())
    }

    /// Called for each group. Values that it does not read are skipped.
    fn reduce(
        &mut self,
        group: <Self::Group as Value>::Ref<'_>,
        values: &mut Values<'_, Self::Key, Self::Value>,
        out: &mut Output<Self::Output>,
    ) -> Result<(), TaskError>;

    /// Called before `save` when the task is checkpointed. Writes buffered data instead of saving it.
    fn flush(&mut self, out: &mut Output<Self::Output>) -> Result<(), TaskError> {
        let _ = out;
        Ok(())
    }

    /// Appends the state that `restore` needs to continue: between two groups and, if it `resumes_in_group`,
    /// between two values of one. Written output is saved separately.
    ///
    /// A reducer that keeps nothing from one group to the next returns [`Save::Stateless`]. One that is given
    /// to [`reducer_resumable`](crate::builder::MapStage::reducer_resumable) needs neither `save` nor
    /// `restore`.
    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        let _ = state;
        Ok(Save::Unsupported)
    }

    /// Restores the state that `save` appended, in another process and after `setup`.
    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let _ = state;
        Err(TaskError::task(
            "this reducer saves its state, but does not restore it; implement `restore`",
        ))
    }

    /// Returns whether it can be stopped inside a group. In that case `reduce` returns when
    /// [`Values::is_cut`] returns true, with the partial result in its state, and is called again for the
    /// same group with the remaining values.
    ///
    /// Otherwise a checkpoint waits for the end of the group.
    fn resumes_in_group(&self) -> bool {
        false
    }

    /// Called before the attempt is suspended: between two groups and, if it `resumes_in_group`, inside one.
    /// Another reducer may be suspended inside a group without this call, because `reduce` is running.
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        Ok(())
    }

    /// Called when the attempt resumes after `on_suspend`.
    fn on_resume(&mut self) -> Result<(), TaskError> {
        Ok(())
    }

    /// Returns whether `on_suspend` must be called before the attempt is stopped inside a group. Then a suspend waits
    /// for the present value, for a second at most (`suspend-grace`). Otherwise the attempt is stopped wherever it is
    /// after 50 ms. By default, a reducer that `resumes_in_group` is waited for.
    fn has_suspend_hooks(&self) -> bool {
        self.resumes_in_group()
    }

    /// Called once after the last group; may still write.
    fn finish(&mut self, out: &mut Output<Self::Output>) -> Result<(), TaskError> {
        let _ = out;
        Ok(())
    }
}

/// A closure as a reducer.
pub(crate) struct ReduceClosure<G, K, V, O, F> {
    closure: Arc<F>,
    types: PhantomData<fn(G, K, V) -> O>,
}

impl<G, K, V, O, F> ReduceClosure<G, K, V, O, F> {
    pub(crate) fn new(closure: F) -> Self {
        ReduceClosure {
            closure: Arc::new(closure),
            types: PhantomData,
        }
    }
}

impl<G, K, V, O, F> Clone for ReduceClosure<G, K, V, O, F> {
    fn clone(&self) -> Self {
        ReduceClosure {
            closure: Arc::clone(&self.closure),
            types: PhantomData,
        }
    }
}

impl<G, K, V, O, F, R> Reducer for ReduceClosure<G, K, V, O, F>
where
    G: Key,
    K: Key,
    V: Value,
    O: OutputFormat,
    F: Fn(G::Ref<'_>, &mut Values<'_, K, V>, &mut Output<O>) -> R + Send + Sync + 'static,
    R: Outcome,
{
    type Group = G;
    type Key = K;
    type Value = V;
    type Output = O;

    #[inline]
    fn reduce(
        &mut self,
        group: G::Ref<'_>,
        values: &mut Values<'_, K, V>,
        out: &mut Output<O>,
    ) -> Result<(), TaskError> {
        (self.closure)(group, values, out).outcome()
    }

    /// A closure cannot change its captures, except through interior mutability.
    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Stateless)
    }
}
