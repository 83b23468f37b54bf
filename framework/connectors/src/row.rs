//! Rows that do not have the requested type.

/// A row that does not have the requested type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The row as text.
    pub row: String,
    /// The problem.
    pub reason: String,
}
