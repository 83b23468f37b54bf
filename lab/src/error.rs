//! Errors are `anyhow` errors. Two kinds decide the exit status of `nap lab`: wrong usage, and an interrupt.

use std::fmt;
use std::path::Path;

/// An argument that names a missing or unusable thing.
#[derive(Debug)]
pub struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted by signal {signal}")]
pub struct InterruptError {
    pub signal: u8,
}

pub fn usage(what: impl fmt::Display) -> anyhow::Error {
    Usage(what.to_string()).into()
}

/// `cannot read PATH: the error`, for `map_err`.
pub fn cannot<E: fmt::Display>(action: &str, path: &Path) -> impl Fn(E) -> anyhow::Error + Copy {
    move |error| anyhow::anyhow!("cannot {action} {}: {error}", path.display())
}

/// The signal that ended an experiment, if one did.
pub fn signal(error: &anyhow::Error) -> Option<u8> {
    let interrupted = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<InterruptError>());
    interrupted.map(|interrupted| interrupted.signal)
}

pub fn is_usage(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<Usage>())
}
