//! A program that speaks frames as the map of a job, with and without a reduce.

use std::marker::PhantomData;
use std::sync::Arc;

use napreduce_protocol::TaskError;
use napreduce_task::SuspendHooks;

use super::super::conversation::suspended_with_conversation;
use super::batch::{InvalidBatch, pairs, strings};
use super::conversation::Conversation;
use super::hello::{Combine, Role};
use super::number::{Number, combinable};
use super::program::FramesProgram;
use super::receiver::{ProgramError, TakeBatch};
use crate::codec::{Key, Value};
use crate::emit::Emit;
use crate::input::InputFormat;
use crate::output::{Output, Text};
use crate::state::Save;
use crate::task::errors::collect_error;
use crate::user_code::{Mapper, PartMap, TaskInfo};

/// A key of a program's pairs.
pub(super) trait PairKey: Key + Clone {
    /// Reads a key. The error completes the sentence "the program sent ...".
    fn read(bytes: &[u8]) -> Result<Self::Ref<'_>, String>;
}

impl PairKey for Vec<u8> {
    #[inline]
    fn read(bytes: &[u8]) -> Result<&[u8], String> {
        Ok(bytes)
    }
}

/// A key with a part that forms groups and a part that orders values within a group.
pub(super) type Grouped = (Vec<u8>, Vec<u8>);

impl PairKey for Grouped {
    /// The encoding is the length of the first part (`u32`, big-endian) and both parts.
    #[inline]
    fn read(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
        let parts = bytes.split_first_chunk().and_then(|(length, parts)| {
            parts.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
        });
        parts.ok_or_else(|| {
            format!(
                "a key of {} bytes without a valid group length",
                bytes.len()
            )
        })
    }
}

/// A value of a program's pairs.
pub(super) trait PairValue: Value + Clone {
    /// The combiner of the job, if there is one.
    type How: Copy + Send + Sync + 'static;

    /// Reads a value. The error completes the sentence "the program sent ...".
    fn read(how: Self::How, bytes: &[u8]) -> Result<Self::Ref<'_>, String>;
}

impl PairValue for Vec<u8> {
    type How = ();

    #[inline]
    fn read((): (), bytes: &[u8]) -> Result<&[u8], String> {
        Ok(bytes)
    }
}

impl PairValue for Number {
    type How = Combine;

    #[inline]
    fn read(how: Combine, bytes: &[u8]) -> Result<i128, String> {
        combinable(how, bytes)
    }
}

/// Pairs for the reduces.
struct Pairs<'out, K: PairKey, V: PairValue> {
    out: &'out mut Emit<K, V>,
    how: V::How,
}

impl<K: PairKey, V: PairValue> TakeBatch for Pairs<'_, K, V> {
    fn take_batch(&mut self, payload: &[u8]) -> Result<(), ProgramError> {
        pairs(payload, |key, value| {
            let key = K::read(key).map_err(ProgramError::Protocol)?;
            self.out.emit(
                key,
                V::read(self.how, value).map_err(ProgramError::Protocol)?,
            );
            Ok::<_, ProgramError>(())
        })
    }

    fn check(&mut self) -> Result<(), TaskError> {
        self.out.check().map_err(collect_error)
    }
}

/// Lines of a part file.
impl TakeBatch for Output<Text> {
    fn take_batch(&mut self, payload: &[u8]) -> Result<(), ProgramError> {
        strings(payload, |line| {
            self.emit(line, ());
            Ok::<_, InvalidBatch>(())
        })?;
        Ok(())
    }

    fn check(&mut self) -> Result<(), TaskError> {
        Ok(Output::check(self)?)
    }
}

/// A mapper that is a program: it receives the records of its split and returns pairs.
#[derive(Clone)]
pub(super) struct FramesMapper<I, K, V: PairValue> {
    conversation: Conversation,
    how: V::How,
    types: PhantomData<fn(I) -> (K, V)>,
}

impl<I, K, V: PairValue> FramesMapper<I, K, V> {
    pub(super) fn new(program: &Arc<FramesProgram>, how: V::How) -> FramesMapper<I, K, V> {
        let conversation = Conversation::new(Arc::clone(program), Role::Map);
        FramesMapper {
            conversation,
            how,
            types: PhantomData,
        }
    }
}

impl<I, K, V> Mapper for FramesMapper<I, K, V>
where
    I: InputFormat + Clone,
    for<'r> I::Record<'r>: AsRef<[u8]>,
    K: PairKey,
    V: PairValue,
{
    type Input = I;
    type Key = K;
    type Value = V;

    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        self.conversation.start(task)
    }

    fn map(&mut self, record: I::Record<'_>, out: &mut Emit<K, V>) -> Result<(), TaskError> {
        let place = out.input();
        self.conversation
            .record(record.as_ref(), &place, &mut Pairs { out, how: self.how })
    }

    fn flush(&mut self, out: &mut Emit<K, V>) -> Result<(), TaskError> {
        self.conversation
            .request_state(&mut Pairs { out, how: self.how })
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        self.conversation.save(state)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.conversation.restore(state)
    }

    suspended_with_conversation!();

    fn finish(&mut self, out: &mut Emit<K, V>) -> Result<(), TaskError> {
        self.conversation.finish(&mut Pairs { out, how: self.how })
    }
}

/// The map of a job without reduce: the program returns lines.
#[derive(Clone)]
pub(super) struct FramesPart {
    conversation: Conversation,
}

impl FramesPart {
    pub(super) fn new(program: &Arc<FramesProgram>) -> FramesPart {
        FramesPart {
            conversation: Conversation::new(Arc::clone(program), Role::Map),
        }
    }
}

impl<I> PartMap<I, Text> for FramesPart
where
    I: InputFormat,
    for<'r> I::Record<'r>: AsRef<[u8]>,
{
    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        self.conversation.start(task)
    }

    fn map(&mut self, record: I::Record<'_>, out: &mut Output<Text>) -> Result<(), TaskError> {
        let place = out.input();
        self.conversation.record(record.as_ref(), &place, out)
    }

    fn flush(&mut self, out: &mut Output<Text>) -> Result<(), TaskError> {
        self.conversation.request_state(out)
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        self.conversation.save(state)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.conversation.restore(state)
    }

    fn finish(&mut self, out: &mut Output<Text>) -> Result<(), TaskError> {
        self.conversation.finish(out)
    }
}

impl SuspendHooks for FramesPart {
    suspended_with_conversation!();
}
