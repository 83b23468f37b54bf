//! The state of user code in a checkpoint.

pub mod derive_support;

use napreduce_engine::FaultPlace;
use napreduce_protocol::TaskError;

pub use napreduce_derive::Resumable;

/// The result of `save` in a mapper, a reducer or an output format. Mappers and reducers that derive
/// [`Resumable`] need no `save`.
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

/// A mapper or reducer whose state is saved in checkpoints. `#[derive(Resumable)]` implements it: each field
/// is saved by its serde type, and `#[resumable(skip)]` leaves one out, such as a cache or a pattern. After a
/// restore a skipped field has the value of a fresh clone after `setup`.
///
/// [`mapper_resumable`](crate::builder::Source::mapper_resumable) and
/// [`reducer_resumable`](crate::builder::MapStage::reducer_resumable) require it, so a task that is to be
/// checkpointed cannot lack its state; the mapper's or reducer's own `save` and `restore` are not called.
///
/// ```
/// use napreduce::Resumable;
///
/// #[derive(Resumable, Clone, Default)]
/// struct Longest {
///     line: String,
///     lines: u64,
///     #[resumable(skip)]
///     cache: Vec<String>,
/// }
///
/// let before = Longest { line: "words".to_owned(), lines: 2, cache: vec!["words".to_owned()] };
/// let mut saved = Vec::new();
/// before.save_state(&mut saved)?;
///
/// let mut restored = Longest::default();
/// restored.restore_state(&saved)?;
/// assert_eq!((restored.line.as_str(), restored.lines, restored.cache.len()), ("words", 2, 0));
/// # Ok::<(), napreduce::TaskError>(())
/// ```
///
/// The saved bytes begin with the name of the struct and the names and types of its fields. Those of another
/// struct are refused, and the task starts over:
///
/// ```
/// use napreduce::Resumable;
///
/// #[derive(Resumable)]
/// struct Total(u64);
///
/// #[derive(Resumable)]
/// struct Mean(u64, u64);
///
/// let mut saved = Vec::new();
/// Total(5).save_state(&mut saved)?;
/// let refused = Mean(0, 0).restore_state(&saved).expect_err("another struct");
/// assert_eq!(
///     refused.to_string(),
///     "the saved state is of `Total v1 { 0: u64 }`, which `Mean v1 { 0: u64, 1: u64 }` cannot restore"
/// );
/// # Ok::<(), napreduce::TaskError>(())
/// ```
///
/// A field needs serde's `Serialize` and `Deserialize`; standard types have them, and a type of your own
/// derives them from the crate `serde`. The two methods can also be written by hand, for a state in another
/// form.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be saved in a checkpoint",
    label = "its state is not resumable",
    note = "write `#[derive(napreduce::Resumable)]` above the struct, and `#[resumable(skip)]` above fields that need not be saved"
)]
pub trait Resumable {
    /// Appends the state to `saved`.
    fn save_state(&self, saved: &mut Vec<u8>) -> Result<(), TaskError>;

    /// Restores the state that `save_state` appended into a fresh clone, after `setup`. Returns an error for
    /// other bytes and leaves the state as it was.
    fn restore_state(&mut self, saved: &[u8]) -> Result<(), TaskError>;
}

/// Converts an error while saving, for example a full disk: the attempt fails and its task is retried,
/// which costs only the unsaved work.
pub(crate) fn unsaved(error: impl std::fmt::Display) -> TaskError {
    TaskError::retryable(format!("the task could not be checkpointed: {error}"))
        .at(FaultPlace::SharedStorage)
}
