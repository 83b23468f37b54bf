//! An input whose values are emitted as the second field of their keys, so that the shuffle sorts them.

use napreduce_protocol::{MapTask, TaskError};
use napreduce_task::TaskContext;

use super::map::{MapLoop, OpenMap};
use super::reading::{Read, ReadPosition};
use super::saving::UserState;
use crate::codec::Key;
use crate::emit::Emit;

/// A map of type `M` that emits keys and values.
pub(crate) struct ValuesInKeys<M: ?Sized> {
    pub(crate) map: Box<M>,
}

impl<M, K: Key, V: Key> OpenMap<(K, V), ()> for ValuesInKeys<M>
where
    M: OpenMap<K, V> + ?Sized,
{
    fn open<'a>(
        &'a self,
        out: Emit<(K, V), ()>,
        place: ReadPosition,
        task: &'a MapTask,
        context: &'a TaskContext,
    ) -> Result<Box<dyn MapLoop<(K, V), ()> + 'a>, TaskError> {
        let map = self.map.open(out.take_values(), place, task, context)?;
        Ok(Box::new(ValuesInKeysLoop { map }))
    }
}

struct ValuesInKeysLoop<'a, K, V> {
    map: Box<dyn MapLoop<K, V> + 'a>,
}

impl<K: Key, V: Key> MapLoop<(K, V), ()> for ValuesInKeysLoop<'_, K, V> {
    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.map.restore(state)
    }

    fn read(&mut self, place: ReadPosition, restored: bool) -> Result<Read, TaskError> {
        self.map.read(place, restored)
    }

    fn into_output(self: Box<Self>) -> (Emit<(K, V), ()>, Option<UserState>) {
        let (out, saved) = self.map.into_output();
        (out.into_keys_with_values(), saved)
    }
}
