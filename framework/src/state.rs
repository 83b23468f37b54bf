//! The result of saving the state of user code for a checkpoint.

use napreduce_engine::FaultPlace;
use napreduce_protocol::TaskError;

/// The result of `save` in a mapper, a reducer or an output format.
///
/// `save` is also called once on a job's own mapper and reducer when the job is built. If one returns
/// `Unsupported`, clusters whose scheduler checkpoints tasks reject the job.
///
/// The format of the state is up to `save` and `restore`. [`Value::encode_owned`](crate::Value::encode_owned)
/// and [`Value::decode_owned`](crate::Value::decode_owned) convert every key or value type to and from bytes;
/// `?` propagates their errors:
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
    /// There is no state: a new clone continues after `setup` alone.
    Stateless,
    /// The state was appended; `restore` applies it to a new clone after `setup`.
    Saved,
    /// The state cannot be saved, so the task is not checkpointed; the default of the traits.
    Unsupported,
}

/// Converts an error while saving, for example a full disk: the attempt fails and its task is retried,
/// which costs only the unsaved work.
pub(crate) fn unsaved(error: impl std::fmt::Display) -> TaskError {
    TaskError::retryable(format!("the task could not be checkpointed: {error}")).at(FaultPlace::SharedStorage)
}
