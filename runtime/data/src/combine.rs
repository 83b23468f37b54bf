//! Combining: folding values of equal keys before they cost sorting, disk and network.
//!
//! Owns the trait that a fold implements and folding while merging. Does not own the hash table in front of the sort
//! (`collect::table`).

/// An associative fold of values, with their encoding. The order in which values are folded is not defined.
pub trait Combiner {
    /// The accumulator; a single value is an accumulator of itself.
    type Value;

    /// Folds `more` into `into`.
    fn fold(&self, into: &mut Self::Value, more: Self::Value);

    /// Appends the encoded value. A job with `RecordEncoding::Fixed` appends exactly its value length.
    fn encode(&self, value: &Self::Value, into: &mut Vec<u8>);

    /// Reads back what `encode` wrote.
    ///
    /// # Errors
    /// What does not fit, for the message of the task's failure.
    fn decode(&self, bytes: &[u8]) -> Result<Self::Value, String>;

    /// Bytes that the value owns outside itself, for the memory budget: 0 for plain numbers, the capacity for a list.
    #[inline]
    fn heap_bytes(&self, value: &Self::Value) -> usize {
        let _ = value;
        0
    }
}
