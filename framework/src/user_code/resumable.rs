//! States that are saved in checkpoints by their types: closures with a state of a serde type, and mappers and
//! reducers that are `Resumable`.

use std::any::type_name;
use std::marker::PhantomData;
use std::sync::Arc;

use napreduce_protocol::TaskError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::names::short_name;
use crate::codec::{Key, Value};
use crate::emit::Emit;
use crate::input::InputFormat;
use crate::output::{Output, OutputFormat};
use crate::state::{Resumable, Save, derive_support};
use crate::values::Values;

use super::mapper::Mapper;
use super::outcome::Outcome;
use super::reducer::Reducer;
use super::task_info::TaskInfo;

/// A closure with a state as a reducer.
pub(crate) struct ResumableClosure<G, K, V, O, S, F> {
    closure: Arc<F>,
    state: S,
    types: PhantomData<fn(G, K, V) -> O>,
}

impl<G, K, V, O, S, F> ResumableClosure<G, K, V, O, S, F> {
    pub(crate) fn new(start: S, closure: F) -> Self {
        ResumableClosure {
            closure: Arc::new(closure),
            state: start,
            types: PhantomData,
        }
    }
}

impl<G, K, V, O, S: Clone, F> Clone for ResumableClosure<G, K, V, O, S, F> {
    fn clone(&self) -> Self {
        ResumableClosure {
            closure: Arc::clone(&self.closure),
            state: self.state.clone(),
            types: PhantomData,
        }
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

    fn has_suspend_hooks(&self) -> bool {
        false
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        save_serde(&self.state, state)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.state = restore_serde(state)?;
        Ok(())
    }
}

/// A mapper that is saved by `Resumable` instead of its own `save`.
#[derive(Clone)]
pub(crate) struct ResumableMapper<M>(pub(crate) M);

impl<M: Mapper + Resumable> Mapper for ResumableMapper<M> {
    type Input = M::Input;
    type Key = M::Key;
    type Value = M::Value;

    fn setup(&mut self, task: &TaskInfo) -> Result<(), TaskError> {
        self.0.setup(task)
    }

    #[inline]
    fn map(
        &mut self,
        record: <M::Input as InputFormat>::Record<'_>,
        out: &mut Emit<M::Key, M::Value>,
    ) -> Result<(), TaskError> {
        self.0.map(record, out)
    }

    fn flush(&mut self, out: &mut Emit<M::Key, M::Value>) -> Result<(), TaskError> {
        self.0.flush(out)
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        self.0.save_state(state)?;
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.0.restore_state(state)
    }

    fn on_suspend(&mut self) -> Result<(), TaskError> {
        self.0.on_suspend()
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        self.0.on_resume()
    }

    fn has_suspend_hooks(&self) -> bool {
        self.0.has_suspend_hooks()
    }

    fn finish(&mut self, out: &mut Emit<M::Key, M::Value>) -> Result<(), TaskError> {
        self.0.finish(out)
    }
}

/// A reducer that is saved by `Resumable` instead of its own `save`.
#[derive(Clone)]
pub(crate) struct ResumableReducer<R>(pub(crate) R);

impl<R: Reducer + Resumable> Reducer for ResumableReducer<R> {
    type Group = R::Group;
    type Key = R::Key;
    type Value = R::Value;
    type Output = R::Output;

    fn setup(&mut self, task: &TaskInfo, out: &mut Output<R::Output>) -> Result<(), TaskError> {
        self.0.setup(task, out)
    }

    #[inline]
    fn reduce(
        &mut self,
        group: <R::Group as Value>::Ref<'_>,
        values: &mut Values<'_, R::Key, R::Value>,
        out: &mut Output<R::Output>,
    ) -> Result<(), TaskError> {
        self.0.reduce(group, values, out)
    }

    fn flush(&mut self, out: &mut Output<R::Output>) -> Result<(), TaskError> {
        self.0.flush(out)
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        self.0.save_state(state)?;
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.0.restore_state(state)
    }

    fn resumes_in_group(&self) -> bool {
        self.0.resumes_in_group()
    }

    fn on_suspend(&mut self) -> Result<(), TaskError> {
        self.0.on_suspend()
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        self.0.on_resume()
    }

    fn has_suspend_hooks(&self) -> bool {
        self.0.has_suspend_hooks()
    }

    fn finish(&mut self, out: &mut Output<R::Output>) -> Result<(), TaskError> {
        self.0.finish(out)
    }
}

/// Appends a state to the saved bytes.
pub(super) fn save_serde<S: Serialize + DeserializeOwned>(
    state: &S,
    saved: &mut Vec<u8>,
) -> Result<Save, TaskError> {
    derive_support::write_shape(&shape_of::<S>(), saved);
    derive_support::write_field("state", state, saved)?;
    Ok(Save::Saved)
}

pub(super) fn restore_serde<S: Serialize + DeserializeOwned>(saved: &[u8]) -> Result<S, TaskError> {
    let shape = shape_of::<S>();
    let mut rest = derive_support::read_shape(&shape, saved)?;
    let state = derive_support::read_field(&shape, "state", &mut rest)?;
    derive_support::read_end(&shape, rest)?;
    Ok(state)
}

fn shape_of<S>() -> String {
    short_name(type_name::<S>())
}
