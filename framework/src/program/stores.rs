//! Registration of this program's stores in the runtime.

/// Registers the stores that `napreduce` is built with, so that this process can commit outputs to them. A
/// [`Program`](crate::Program) does so itself; call this in a process that runs a coordinator.
///
/// ```
/// napreduce::program::know_stores();
/// ```
pub fn know_stores() {
    #[cfg(feature = "storage")]
    napreduce_task::set_object_stores(napreduce_connectors::stores::stores_of);
}
