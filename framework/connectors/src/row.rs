//! A row that is not of the type that was asked for.

/// A row that is not of the type that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The row in words.
    pub row: String,
    /// The reason.
    pub reason: String,
}
