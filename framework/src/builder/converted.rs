//! An input whose map emits other types than the job shuffles: each emitted record is converted on its way. A
//! fold like `count` thus shuffles numbers, whatever the values of the map are.

use std::sync::Arc;

use napreduce_protocol::{InputSplit, MapTask, TaskError};
use napreduce_task::TaskContext;

use crate::codec::{Key, Value};
use crate::emit::Emit;
use crate::input::{InputError, InputFile, Split};
use crate::settings::Settings;
use crate::task::map::{MapLoop, OpenMap};
use crate::task::reading::{Read, ReadPosition};
use crate::task::saving::UserState;

use super::inputs::InputMap;

/// An input and the conversion of the records that its map emits.
pub(super) struct ConvertedMap<K, V, F> {
    pub(super) map: Box<dyn InputMap<K, V>>,
    pub(super) convert: Arc<F>,
}

impl<K, V, L, W, F> OpenMap<L, W> for ConvertedMap<K, V, F>
where
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

impl<K, V, L, W, F> InputMap<L, W> for ConvertedMap<K, V, F>
where
    K: Key,
    V: Value,
    L: Key,
    W: Value,
    F: Fn(K::Ref<'_>, V::Ref<'_>, &mut Emit<L, W>) + Send + Sync + 'static,
{
    fn plan(&self, files: &[InputFile], split_size: u64) -> Result<Vec<InputSplit>, InputError> {
        self.map.plan(files, split_size)
    }

    fn refusals(&self, files: &[InputFile], split_size: u64) -> Vec<String> {
        self.map.refusals(files, split_size)
    }

    fn sample(
        &self,
        split: &Split,
        wanted: usize,
        memory: u64,
        out: Emit<L, W>,
    ) -> Result<Emit<L, W>, TaskError> {
        let out = Emit::converting(out, Arc::clone(&self.convert));
        Ok(self.map.sample(split, wanted, memory, out)?.into_converted(&*self.convert))
    }

    fn saves(&self) -> bool {
        self.map.saves()
    }

    fn set(&mut self, settings: &Settings) {
        self.map.set(settings);
    }
}
