//! An input whose map emits other types than the job shuffles: each emitted record is converted on its way. A
//! fold like `count` thus shuffles numbers, whatever the values of the map are.

use std::marker::PhantomData;
use std::sync::Arc;

use napreduce_protocol::{MapTask, TaskError};
use napreduce_task::TaskContext;

use super::map::{MapLoop, OpenMap};
use super::reading::{Read, ReadPosition};
use super::saving::UserState;
use crate::codec::{Key, Value};
use crate::emit::Emit;

/// A map of type `M` and the conversion of the records that it emits.
pub(crate) struct ConvertedMap<M: ?Sized, K, V, F> {
    pub(crate) map: Box<M>,
    pub(crate) convert: Arc<F>,
    types: PhantomData<fn(K, V)>,
}

impl<M: ?Sized, K, V, F> ConvertedMap<M, K, V, F> {
    pub(crate) fn new(map: Box<M>, convert: Arc<F>) -> Self {
        ConvertedMap { map, convert, types: PhantomData }
    }
}

impl<M, K, V, L, W, F> OpenMap<L, W> for ConvertedMap<M, K, V, F>
where
    M: OpenMap<K, V> + ?Sized,
    K: Key,
    V: Value,
    L: Key,
    W: Value,
    F: Fn(K::Ref<'_>, V::Ref<'_>, &mut Emit<L, W>) + Send + Sync + 'static,
{
    fn open<'a>(
        &'a self,
        out: Emit<L, W>,
        place: ReadPosition,
        task: &'a MapTask,
        context: &'a TaskContext,
    ) -> Result<Box<dyn MapLoop<L, W> + 'a>, TaskError> {
        let out = Emit::converting(out, Arc::clone(&self.convert));
        let map = self.map.open(out, place, task, context)?;
        Ok(Box::new(ConvertedLoop { map, convert: &*self.convert }))
    }
}

struct ConvertedLoop<'a, K, V, F> {
    map: Box<dyn MapLoop<K, V> + 'a>,
    convert: &'a F,
}

impl<K, V, L, W, F> MapLoop<L, W> for ConvertedLoop<'_, K, V, F>
where
    K: Key,
    V: Value,
    L: Key,
    W: Value,
    F: Fn(K::Ref<'_>, V::Ref<'_>, &mut Emit<L, W>) + 'static,
{
    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.map.restore(state)
    }

    fn read(&mut self, place: ReadPosition, restored: bool) -> Result<Read, TaskError> {
        self.map.read(place, restored)
    }

    fn into_output(self: Box<Self>) -> (Emit<L, W>, Option<UserState>) {
        let (out, saved) = self.map.into_output();
        (out.into_converted(self.convert), saved)
    }
}
