//! A closure with a state, as a reducer that can be restored. The state is saved by its serde type.

use std::marker::PhantomData;
use std::sync::Arc;

use napreduce_protocol::TaskError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{Key, Value};
use crate::output::{Output, OutputFormat};
use crate::state::Save;
use crate::values::Values;

use super::outcome::Outcome;
use super::reducer::Reducer;

/// A closure with a state as a reducer; made by
/// [`reduce_resumable`](crate::builder::MapStage::reduce_resumable).
///
/// ```
/// use napreduce::Reducer;
/// use napreduce::builder::ResumableClosure;
/// use napreduce::output::Text;
///
/// fn is_a_reducer<R: Reducer>() {}
///
/// type Function = fn(&mut u64, &str, &mut napreduce::Values<'_, String, u64>, &mut napreduce::Output<Text>);
/// is_a_reducer::<ResumableClosure<String, String, u64, Text, u64, Function>>();
/// ```
#[must_use = "it does nothing outside of a job: give it to `reducer`"]
pub struct ResumableClosure<G, K, V, O, S, F> {
    closure: Arc<F>,
    state: S,
    types: PhantomData<fn(G, K, V) -> O>,
}

impl<G, K, V, O, S, F> ResumableClosure<G, K, V, O, S, F> {
    pub(crate) fn new(start: S, closure: F) -> Self {
        ResumableClosure { closure: Arc::new(closure), state: start, types: PhantomData }
    }
}

impl<G, K, V, O, S: Clone, F> Clone for ResumableClosure<G, K, V, O, S, F> {
    fn clone(&self) -> Self {
        ResumableClosure { closure: Arc::clone(&self.closure), state: self.state.clone(), types: PhantomData }
    }
}

impl<G, K, V, O, S, F, R> Reducer for ResumableClosure<G, K, V, O, S, F>
where
    G: Key,
    K: Key,
    V: Value,
    O: OutputFormat,
    S: Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
    F: Fn(&mut S, G::Ref<'_>, &mut Values<'_, K, V>, &mut Output<O>) -> R + Send + Sync + 'static,
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
        (self.closure)(&mut self.state, group, values, out).outcome()
    }

    fn resumes_in_group(&self) -> bool {
        true
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        save_serde(&self.state, state)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.state = restore_serde(state)?;
        Ok(())
    }
}

/// Appends a state to the saved bytes.
pub(super) fn save_serde<S: Serialize>(state: &S, saved: &mut Vec<u8>) -> Result<Save, TaskError> {
    let appended = postcard::to_extend(state, std::mem::take(saved));
    *saved = appended.map_err(|error| TaskError::task(format!("the state cannot be saved: {error}")))?;
    Ok(Save::Saved)
}

pub(super) fn restore_serde<S: DeserializeOwned>(saved: &[u8]) -> Result<S, TaskError> {
    postcard::from_bytes(saved).map_err(|error| TaskError::task(format!("the state cannot be read: {error}")))
}
