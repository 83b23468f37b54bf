//! The `Mapper` trait, and closures as mappers.

use std::marker::PhantomData;
use std::sync::Arc;

use napreduce_protocol::TaskError;

use crate::codec::{Key, Value};
use crate::emit::Emit;
use crate::input::InputFormat;
use crate::state::Save;

use super::outcome::{Outcome, about_record};
use super::task_info::TaskInfo;

/// A map with state. A closure passed to `map` is the simple form.
///
/// Every attempt works on its own clone, so state never passes from one attempt to another.
///
/// ```
/// use napreduce::input::TextLines;
/// use napreduce::{Emit, Job, Mapper, Save, TaskError};
///
/// /// Emits the longest line of each split, once, at the end.
/// #[derive(Clone, Default)]
/// struct Longest(String);
///
/// impl Mapper for Longest {
///     type Input = TextLines;
///     type Key = u64;
///     type Value = String;
///
///     fn map(&mut self, line: &str, _: &mut Emit<u64, String>) -> Result<(), TaskError> {
///         if line.len() > self.0.len() {
///             self.0 = line.to_owned();
///         }
///         Ok(())
///     }
///
///     fn finish(&mut self, out: &mut Emit<u64, String>) -> Result<(), TaskError> {
///         out.emit(self.0.len() as u64, &self.0);
///         Ok(())
///     }
///
///     // With these two methods a task can be checkpointed and continue on another worker.
///     fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
///         state.extend_from_slice(self.0.as_bytes());
///         Ok(Save::Saved)
///     }
///
///     fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
///         self.0 = String::from_utf8_lossy(state).into_owned();
///         Ok(())
///     }
/// }
///
/// let job = Job::text().mapper(Longest::default()).reduce(|length, lines, out| {
///     while let Some(line) = lines.next() {
///         out.emit(length, line);
///     }
/// });
/// # let _ = job;
/// ```
pub trait Mapper: Clone + Send + Sync + 'static {
    /// The input format it reads.
    type Input: InputFormat;
    /// The emitted key type, as a family: `String` is emitted as `&str`.
    type Key: Key;
    /// The emitted value type, as a family.
    type Value: Value;

    /// Called once before the first record of an attempt.
    fn setup(&mut self, task: &TaskInfo) -> Result<(), TaskError> {
        let _ = task;
        Ok(())
    }

    /// Called for each record.
    fn map(
        &mut self,
        record: <Self::Input as InputFormat>::Record<'_>,
        out: &mut Emit<Self::Key, Self::Value>,
    ) -> Result<(), TaskError>;

    /// Called before `save` when the task is checkpointed. Emits buffered data, such as an incomplete batch,
    /// instead of saving it.
    ///
    /// ```
    /// # use napreduce::{Emit, Job, Mapper, Save, TaskError};
    /// # use napreduce::input::TextLines;
    /// /// Looks up a hundred words at once.
    /// #[derive(Clone, Default)]
    /// struct LookUp(Vec<String>);
    ///
    /// impl Mapper for LookUp {
    /// #    type Input = TextLines;
    /// #    type Key = String;
    /// #    type Value = u64;
    ///     // ...
    ///     fn map(&mut self, word: &str, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
    ///         self.0.push(word.to_owned());
    ///         if self.0.len() == 100 { self.flush(out) } else { Ok(()) }
    ///     }
    ///
    ///     fn flush(&mut self, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
    ///         self.0.drain(..).for_each(|word| out.emit(&word, word.len() as u64));
    ///         Ok(())
    ///     }
    ///
    ///     fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
    ///         Ok(Save::Stateless)
    ///     }
    ///
    ///     fn finish(&mut self, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
    ///         self.flush(out)
    ///     }
    /// }
    ///
    /// let job = || Job::text().mapper(LookUp::default()).reduce(|word, lengths, out| out.emit(word, lengths.sum()));
    /// napreduce::testing::assert_preemption_safe(job, "to\nbe\nor\nnot\nto\nbe\n");
    /// ```
    fn flush(&mut self, out: &mut Emit<Self::Key, Self::Value>) -> Result<(), TaskError> {
        let _ = out;
        Ok(())
    }

    /// Appends the state that `restore` needs to continue after the last record. Emitted records are saved
    /// separately.
    ///
    /// A mapper that keeps nothing from one record to the next returns [`Save::Stateless`]. One that is given
    /// to [`mapper_resumable`](crate::builder::Source::mapper_resumable) needs neither `save` nor `restore`.
    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        let _ = state;
        Ok(Save::Unsupported)
    }

    /// Restores the state that `save` appended, in another process and after `setup`.
    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let _ = state;
        Err(TaskError::task(
            "this mapper saves its state, but does not restore it; implement `restore`",
        ))
    }

    /// Called between two records before the attempt is suspended. Releases shared resources, such as
    /// connections.
    ///
    /// ```
    /// # use napreduce::{Emit, Mapper, TaskError};
    /// # use napreduce::input::TextLines;
    /// # #[derive(Clone, Default)]
    /// # struct Connection;
    /// #[derive(Clone, Default)]
    /// struct Lookup(Option<Connection>);
    ///
    /// impl Mapper for Lookup {
    /// #    type Input = TextLines;
    /// #    type Key = String;
    /// #    type Value = ();
    ///     // ...
    ///     fn map(&mut self, line: &str, out: &mut Emit<String, ()>) -> Result<(), TaskError> {
    ///         let _connection = self.0.get_or_insert_with(Connection::default);
    ///         out.emit(line, ());
    ///         Ok(())
    ///     }
    ///
    ///     fn on_suspend(&mut self) -> Result<(), TaskError> {
    ///         self.0 = None;
    ///         Ok(())
    ///     }
    ///
    ///     fn on_resume(&mut self) -> Result<(), TaskError> {
    ///         self.0 = Some(Connection::default());
    ///         Ok(())
    ///     }
    /// }
    /// ```
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        Ok(())
    }

    /// Called when the attempt resumes after `on_suspend`.
    fn on_resume(&mut self) -> Result<(), TaskError> {
        Ok(())
    }

    /// Returns whether `on_suspend` must be called before the attempt is stopped. Then a suspend waits for the end
    /// of the present record, for a second at most (`suspend-grace`).
    ///
    /// A mapper without these hooks should return false: the attempt is then stopped inside its record if that does
    /// not end within 50 ms, and its slot is free at once. Closures have no hooks.
    fn has_suspend_hooks(&self) -> bool {
        true
    }

    /// Called once after the last record; may still emit.
    fn finish(&mut self, out: &mut Emit<Self::Key, Self::Value>) -> Result<(), TaskError> {
        let _ = out;
        Ok(())
    }
}

/// A closure as a mapper.
pub(crate) struct MapClosure<I, K, V, F> {
    closure: Arc<F>,
    types: PhantomData<fn(I) -> (K, V)>,
}

impl<I, K, V, F> MapClosure<I, K, V, F> {
    pub(crate) fn new(closure: F) -> Self {
        MapClosure {
            closure: Arc::new(closure),
            types: PhantomData,
        }
    }
}

impl<I, K, V, F> Clone for MapClosure<I, K, V, F> {
    fn clone(&self) -> Self {
        MapClosure {
            closure: Arc::clone(&self.closure),
            types: PhantomData,
        }
    }
}

impl<I, K, V, F, R> Mapper for MapClosure<I, K, V, F>
where
    I: InputFormat,
    K: Key,
    V: Value,
    F: Fn(I::Record<'_>, &mut Emit<K, V>) -> R + Send + Sync + 'static,
    R: Outcome,
{
    type Input = I;
    type Key = K;
    type Value = V;

    #[inline]
    fn map(&mut self, record: I::Record<'_>, out: &mut Emit<K, V>) -> Result<(), TaskError> {
        (self.closure)(record, out)
            .outcome()
            .map_err(|error| about_record(error, out.place()))
    }

    /// A closure cannot change its captures, except through interior mutability.
    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Stateless)
    }

    fn has_suspend_hooks(&self) -> bool {
        false
    }
}
