//! The stores that this program is built with, as the runtime is told of them.
//!
//! Owns nothing but that. Does not own reading inputs from them (`input`), which asks nobody.

/// Lets this process commit outputs to the stores that `napreduce` is built with. A
/// [`Program`](crate::Program) does so by itself; for whoever runs a coordinator.
///
/// ```
/// napreduce::program::know_stores();
/// ```
pub fn know_stores() {
    #[cfg(feature = "storage")]
    napreduce_task::set_object_stores(napreduce_connectors::stores::stores_of);
}
