//! A job with a stateful mapper and reducer that have setup and finish. The mapper implements save and restore;
//! the state of the reducer is derived.

use napreduce::input::TextLines;
use napreduce::output::Text;
use napreduce::{Emit, Job, Mapper, Output, Reducer, Resumable, Save, TaskError, TaskInfo, Values};

use crate::Choice;

/// The mapper counts lines and emits the count at the end; the reducer numbers its groups.
#[derive(Clone, Default)]
struct Summary {
    lines: u64,
    prepared: bool,
}

impl Mapper for Summary {
    type Input = TextLines;
    type Key = String;
    type Value = u64;

    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        self.prepared = task.input().is_some();
        Ok(())
    }

    fn map(&mut self, _: &str, _: &mut Emit<String, u64>) -> Result<(), TaskError> {
        self.lines += 1;
        Ok(())
    }

    fn finish(&mut self, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
        out.emit("lines", self.lines);
        out.emit("prepared", u64::from(self.prepared));
        Ok(())
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        // Setup runs again after a restore.
        state.extend_from_slice(&self.lines.to_le_bytes());
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let bytes = state
            .try_into()
            .map_err(|_| TaskError::task("a saved state of another length"))?;
        self.lines = u64::from_le_bytes(bytes);
        Ok(())
    }
}

#[derive(Resumable, Clone, Default)]
struct Numbered(u64);

impl Reducer for Numbered {
    type Group = String;
    type Key = String;
    type Value = u64;
    type Output = Text;

    fn setup(&mut self, _: &TaskInfo<'_>, out: &mut Output<Text>) -> Result<(), TaskError> {
        out.emit("begin", ());
        Ok(())
    }

    fn reduce(
        &mut self,
        name: &str,
        values: &mut Values<'_, String, u64>,
        out: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        self.0 += 1;
        out.emit((self.0, name), values.sum());
        Ok(())
    }

    fn finish(&mut self, out: &mut Output<Text>) -> Result<(), TaskError> {
        out.emit("end", self.0);
        Ok(())
    }
}

pub fn stateful(_: &Choice) -> Job {
    Job::text()
        .mapper(Summary::default())
        .reducer_resumable(Numbered::default())
}
