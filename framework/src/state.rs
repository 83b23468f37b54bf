//! What user code says about its state when its task is to be checkpointed.
//!
//! Owns that answer. Does not own when it is asked for (`task`), nor where a state is kept (live runtime).

/// What a mapper, a reducer or an output format answers when it is to save its state.
///
/// The question is also put once to a job's own mapper and reducer when the job is built: a job of which one answers
/// `Unsupported` is not accepted where a scheduler would checkpoint its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Save {
    /// There is nothing to save: a fresh clone, set up, does as well.
    Stateless,
    /// The state was appended; `restore` makes a fresh clone, set up, go on from it.
    Saved,
    /// It cannot be saved: the task is not checkpointed. What is assumed of traits that do not say.
    Unsupported,
}
