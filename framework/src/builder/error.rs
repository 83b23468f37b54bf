//! The error for an invalid job definition.

use crate::limits::REDUCES;
use crate::output::OutputNameError;

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
    #[error(
        "`partition_by` comes before `group_by`, so that it could divide a group; call it after `group_by`, where it gets \
         the group"
    )]
    PartitionBeforeGrouping,
    #[error("the job has {reduces} reduces; use {} to {}", REDUCES.start(), REDUCES.end())]
    Reduces { reduces: u32 },
}
