//! What user code says about its state when its task is to be checkpointed.
//!
//! Owns that answer, and what becomes of a task whose state was not kept. Does not own when it is asked for
//! (`task`), nor where a state is kept (live runtime).

use napreduce_engine::FaultPlace;
use napreduce_protocol::TaskError;

/// What a mapper, a reducer or an output format answers when it is to save its state.
///
/// The question is also put once to a job's own mapper and reducer when the job is built: a job of which one
/// answers `Unsupported` is not accepted where a scheduler would checkpoint its tasks.
///
/// What is saved is whatever `restore` understands. [`Value::encode_owned`](crate::Value::encode_owned) and
/// [`Value::decode_owned`](crate::Value::decode_owned) make bytes of every type that can be a key or a value,
/// and `?` takes what may be wrong with them:
///
/// ```
/// use napreduce::{Save, TaskError, Value};
///
/// #[derive(Default)]
/// struct Longest(Option<(String, u64)>);
///
/// impl Longest {
///     fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
///         Option::<(String, u64)>::encode_owned(&self.0, true, state);
///         Ok(Save::Saved)
///     }
///
///     fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
///         self.0 = Option::<(String, u64)>::decode_owned(state)?;
///         Ok(())
///     }
/// }
///
/// let mut state = Vec::new();
/// assert_eq!(Longest(Some(("words".to_owned(), 5))).save(&mut state)?, Save::Saved);
/// let mut restored = Longest::default();
/// restored.restore(&state)?;
/// assert_eq!(restored.0, Some(("words".to_owned(), 5)));
/// # Ok::<(), TaskError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Save {
    /// There is nothing to save: a fresh clone, set up, does as well.
    Stateless,
    /// The state was appended; `restore` makes a fresh clone, set up, go on from it.
    Saved,
    /// It cannot be saved: the task is not checkpointed. What is assumed of traits that do not say.
    Unsupported,
}

/// What was to be saved is lost with the attempt, and no more than that: also a full disk does not
/// end the job.
pub(crate) fn unsaved(error: impl std::fmt::Display) -> TaskError {
    TaskError::retryable(format!("the task could not be checkpointed: {error}")).at(FaultPlace::SharedStorage)
}
