//! The error for an invalid job definition.

use std::ops::RangeInclusive;

use crate::output::OutputNameError;

/// Valid numbers of reduces.
pub(super) const REDUCES: RangeInclusive<u32> = 1..=100_000;

/// The error for an invalid job definition.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DefinitionError {
    #[error("the job has no input; add one to `Job::inputs()`")]
    NoInput,
    #[error("invalid input name {0:?}; use letters, digits, - and _, beginning with a letter")]
    InputName(String),
    #[error("two inputs have the name {0:?}; rename one")]
    DuplicateInput(String),
    #[error(transparent)]
    Output(#[from] OutputNameError),
    #[error("the job has {reduces} reduces; use {} to {}", REDUCES.start(), REDUCES.end())]
    Reduces { reduces: u32 },
}
