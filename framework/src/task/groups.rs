//! The loop over the groups of a partition. It checks for suspend and checkpoint requests before each group
//! and between the values of one.

use std::path::Path;

use napreduce_data::ReduceInput;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{FailedRecord, ReduceTask, TaskError};
use napreduce_task::{Boundary, SuspendHooks, TaskContext};

use super::errors::{reduce_error, values_error};
use super::saving::UserState;
use crate::codec::{Scratch, Value};
use crate::input::quoted;
use crate::output::Output;
use crate::user_code::{Grouping, Reducer};
use crate::values::{GroupGate, Values};

/// Bytes of a key in an error.
const KEY_BYTES_SHOWN: usize = 40;

/// Groups between two checks of progress and output errors.
const GROUPS_PER_CHECK: u64 = 1024;

/// The end of the loop.
pub(crate) enum Reduced {
    ToTheEnd,
    /// At a checkpoint, between two groups or two values of one.
    UpTo {
        in_group: bool,
    },
}

/// The end of the values of a group.
enum GroupEnd {
    Whole,
    Checkpoint,
}

pub(crate) struct GroupLoop<'a> {
    pub(crate) input: ReduceInput,
    /// Groups begun, including those of earlier attempts.
    pub(crate) count: u64,
    /// The state of user code, if the loop ended at a checkpoint.
    pub(crate) saved: Option<UserState>,
    context: &'a TaskContext,
    task: &'a ReduceTask,
    /// The checkpoint that was restored.
    restore: Option<&'a Path>,
    /// The group's key: a copy, because the merge advances while user code still holds it.
    group: Vec<u8>,
    /// A checkpoint was requested inside a group that has to be reduced first.
    due: bool,
    /// A checkpoint was requested but is not possible.
    declined: bool,
}

impl<'a> GroupLoop<'a> {
    pub(crate) fn new(
        input: ReduceInput,
        context: &'a TaskContext,
        task: &'a ReduceTask,
        restore: Option<&'a Path>,
    ) -> GroupLoop<'a> {
        GroupLoop {
            count: input.statistics().groups,
            input,
            saved: None,
            context,
            task,
            restore,
            group: Vec::new(),
            due: false,
            declined: false,
        }
    }

    /// Runs the loop; `in_group` if it continues inside the last group begun.
    pub(crate) fn run<R: Reducer>(
        &mut self,
        reducer: &mut R,
        out: &mut Output<R::Output>,
        grouping: &Grouping<R::Group>,
        mut in_group: bool,
    ) -> Result<Reduced, TaskError> {
        let mut scratches = (Scratch::new(), Scratch::new());
        let mut untold = self.restore.is_some();
        loop {
            if !in_group {
                if (self.due || self.context.is_asked()) && self.is_cut(reducer, out)? {
                    return Ok(Reduced::UpTo { in_group: false });
                }
                let task = self.task;
                let restore = self.restore;
                if !self
                    .input
                    .next_group()
                    .map_err(|error| reduce_error(error, task, restore))?
                {
                    break;
                }
                self.count += 1;
            }
            in_group = false;
            self.group.clear();
            self.group.extend_from_slice(self.input.group_key());
            if let GroupEnd::Checkpoint =
                self.reduce_group(reducer, out, grouping, &mut scratches)?
            {
                return Ok(Reduced::UpTo { in_group: true });
            }
            if untold {
                untold = false;
                self.context.restored();
            }
            if self.count.is_multiple_of(GROUPS_PER_CHECK) {
                out.check()?;
                self.context
                    .progress()
                    .set_done(self.input.statistics().bytes);
            }
        }
        if untold {
            self.context.restored();
        }
        Ok(Reduced::ToTheEnd)
    }

    /// Calls the reducer for the current group, and again for the rest if it was cut.
    #[inline(always)]
    fn reduce_group<R: Reducer>(
        &mut self,
        reducer: &mut R,
        out: &mut Output<R::Output>,
        grouping: &Grouping<R::Group>,
        (group_scratch, value_scratch): &mut (Scratch, Scratch),
    ) -> Result<GroupEnd, TaskError> {
        let resumes = reducer.resumes_in_group();
        loop {
            group_scratch.reset();
            let mut rest = self.group.as_slice();
            let key = R::Group::decode(&mut rest, grouping.prefix_length.is_none(), group_scratch)
                .map_err(|error| {
                    TaskError::task(format!("key of group {}: {error}", self.count - 1))
                })?;
            let gate = GroupGate::new(self.context, resumes);
            let mut values = Values::<R::Key, R::Value>::new(&mut self.input, value_scratch, gate);
            let reduced = reducer.reduce(key, &mut values, out);
            let GroupGate {
                error, cut, due, ..
            } = values.gate;
            if let Some(error) = error {
                return Err(values_error(error, self.task, self.restore, self.count - 1));
            }
            reduced.map_err(|error| self.located(error))?;
            self.due |= due;
            if !cut {
                return Ok(GroupEnd::Whole);
            }
            if self.is_cut(reducer, out)? {
                return Ok(GroupEnd::Checkpoint);
            }
        }
    }

    /// Returns whether the task ends here with a checkpoint; saves the state of user code in that case.
    #[cold]
    fn is_cut<R: Reducer>(
        &mut self,
        reducer: &mut R,
        out: &mut Output<R::Output>,
    ) -> Result<bool, TaskError> {
        let due = std::mem::take(&mut self.due);
        let interrupted = self.context.tell(Some(self.input.statistics().bytes));
        let asked = !due
            && interrupted
            && self.context.boundary(&mut Hooks(reducer))? == Boundary::Checkpoint;
        if self.declined || !(due || asked) {
            return Ok(false);
        }
        reducer.flush(out)?;
        out.check()?;
        self.saved = UserState::ask(|state| reducer.save(state), |state| out.save_format(state))?;
        self.declined = self.saved.is_none();
        if self.declined {
            print_error(format_args!(
                "{}: not checkpointed: the reducer or the output format does not implement \
                 its state",
                self.context.attempt()
            ));
        }
        Ok(!self.declined)
    }

    fn located(&self, error: TaskError) -> TaskError {
        if error.is_located && error.record.is_some() {
            return error;
        }
        if error.is_located {
            return error.with_record(self.failed_record());
        }
        let message = format!("{}, reducing {}", error.message, self.place());
        TaskError { message, ..error }.with_record(self.failed_record())
    }

    /// Returns the current group, for an error.
    pub(crate) fn failed_record(&self) -> FailedRecord {
        let partition = format!("partition {}", self.task.partition);
        let group = format!("group {}", self.count.saturating_sub(1));
        FailedRecord::new(partition, group, Some(&shown_key(&self.group)))
    }

    /// Returns the keys of the largest groups for people, with their records.
    pub(crate) fn largest(&mut self) -> impl Iterator<Item = (String, u64)> {
        self.input
            .largest_groups()
            .map(|(key, records)| (shown_key(key), records))
    }

    /// Returns the partition, number and key of the current group.
    pub(crate) fn place(&self) -> String {
        let partition = self.task.partition;
        let group = self.count.saturating_sub(1);
        format!(
            "partition {partition} group {group}, key {}",
            shown_key(&self.group)
        )
    }

    /// Returns the place of a checkpoint.
    pub(crate) fn boundary(&self, in_group: bool) -> String {
        match self.count {
            0 => format!(
                "before the first group of partition {}",
                self.task.partition
            ),
            _ if in_group => format!("inside {}", self.place()),
            _ => format!("after {}", self.place()),
        }
    }
}

/// Returns an encoded key as text, or as bytes in the notation of Rust; shortened.
fn shown_key(key: &[u8]) -> String {
    // A text that is not the last field of its key ends with two zeros.
    let text = key.strip_suffix(&[0, 0]).unwrap_or(key);
    match std::str::from_utf8(text) {
        Ok(text) if !text.contains('\0') => quoted(text.as_bytes()),
        _ => {
            let cut = &key[..key.len().min(KEY_BYTES_SHOWN)];
            let dots = if cut.len() < key.len() { "..." } else { "" };
            format!("b\"{}\"{dots}", cut.escape_ascii())
        }
    }
}

struct Hooks<'r, R>(&'r mut R);

impl<R: Reducer> SuspendHooks for Hooks<'_, R> {
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        self.0.on_suspend()
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        self.0.on_resume()
    }
}
