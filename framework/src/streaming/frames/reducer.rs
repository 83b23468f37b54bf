//! A program that speaks frames as the reduce of a job.

use std::marker::PhantomData;
use std::sync::Arc;

use napreduce_protocol::TaskError;

use super::super::conversation::suspended_with_conversation;
use super::conversation::Conversation;
use super::hello::Role;
use super::mapper::{PairKey, PairValue};
use super::program::FramesProgram;
use crate::output::{Output, Text};
use crate::state::Save;
use crate::user_code::{Reducer, TaskInfo};
use crate::values::Values;

/// A reducer that is a program: it receives groups and returns lines of the part file.
#[derive(Clone)]
pub(super) struct FramesReducer<K, V> {
    conversation: Conversation,
    value: Vec<u8>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> FramesReducer<K, V> {
    pub(super) fn new(program: &Arc<FramesProgram>) -> FramesReducer<K, V> {
        let conversation = Conversation::new(Arc::clone(program), Role::Reduce);
        FramesReducer {
            conversation,
            value: Vec::new(),
            types: PhantomData,
        }
    }
}

impl<K: PairKey, V: PairValue> Reducer for FramesReducer<K, V> {
    type Group = Vec<u8>;
    type Key = K;
    type Value = V;
    type Output = Text;

    fn setup(&mut self, task: &TaskInfo<'_>, _: &mut Output<Text>) -> Result<(), TaskError> {
        self.conversation.start(task)
    }

    fn reduce(
        &mut self,
        key: &[u8],
        values: &mut Values<'_, K, V>,
        out: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        self.conversation.group(key, out)?;
        while let Some(value) = values.next() {
            self.conversation
                .value(V::bytes(value, &mut self.value), out)?;
        }
        self.conversation.end_group(out)
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

    suspended_with_conversation!();

    fn finish(&mut self, out: &mut Output<Text>) -> Result<(), TaskError> {
        self.conversation.finish(out)
    }
}
