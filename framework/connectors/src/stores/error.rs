//! What can go wrong with an object, and what to do next.
//!
//! Errors leave out what a server or a library reports at length: it may hold parts of a credential.

use std::path::Path;

use napreduce_protocol::StorageScheme;

/// An object that cannot be found, read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// No name of an object.
    #[error("{uri} is no name of an object: {reason}")]
    BadUri {
        /// As it was given.
        uri: String,
        /// What is wrong with it.
        reason: String,
    },
    /// This program was built without the store.
    #[error(
        "{uri} is in {store}, which this program was built without; build it with the feature {feature} of napreduce"
    )]
    FeatureOff {
        /// The object.
        uri: String,
        /// What people call the service.
        store: String,
        /// The feature that knows it.
        feature: &'static str,
    },
    /// There is no such object.
    #[error("{uri} does not exist")]
    Missing {
        /// The object.
        uri: String,
    },
    /// There is no such bucket.
    #[error(
        "{uri} cannot be used: there is no {} {bucket}; check its name, and the {} in the environment",
        if is_of_azure(uri) { "container" } else { "bucket" },
        if is_of_azure(uri) { "endpoint" } else { "endpoint and region" }
    )]
    NoBucket {
        /// What was asked for.
        uri: String,
        /// The bucket.
        bucket: String,
    },
    /// It is another version than the one that was asked for, or gone.
    #[error("{uri} is no longer the version that the job began with")]
    Changed {
        /// The object.
        uri: String,
    },
    /// The service knows who asks, and refuses.
    #[error(
        "access to {uri} is refused ({answer}); check the credentials in the environment, and what they may read and write"
    )]
    Denied {
        /// What was asked for.
        uri: String,
        /// The status and the code of the answer: `403 AccessDenied`.
        answer: String,
    },
    /// No credentials were found.
    #[error("no credentials for {uri}: {reason}; {remedy}")]
    NoCredentials {
        /// What was asked for.
        uri: String,
        /// What was found instead.
        reason: String,
        /// What to set.
        remedy: &'static str,
    },
    /// An answer that another try does not change.
    #[error("{uri} cannot be used: the server answered {answer}{}", with_hint(hint))]
    Refused {
        /// What was asked for.
        uri: String,
        /// The status and the code of the answer.
        answer: String,
        /// What that usually means; may be empty.
        hint: &'static str,
    },
    /// Tried again for as long as makes sense.
    #[error(
        "{uri} cannot be used: {reason}, also when tried {tries} times in {seconds} s; run the job again when the store answers"
    )]
    Unreachable {
        /// What was asked for.
        uri: String,
        /// What the last try ended with.
        reason: String,
        /// How often it was tried.
        tries: u32,
        /// For how long.
        seconds: u64,
    },
    /// The environment says something that makes no sense.
    #[error("{uri} cannot be used with the settings in the environment: {reason}")]
    Settings {
        /// What was asked for.
        uri: String,
        /// What is wrong.
        reason: String,
    },
}

fn is_of_azure(uri: &str) -> bool {
    StorageScheme::of(Path::new(uri)) == Some(StorageScheme::Azure)
}

fn with_hint(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("; {hint}") }
}

impl StorageError {
    /// What another try may mend: one of another process, later, on another machine.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            StorageError::Unreachable { .. }
                | StorageError::NoCredentials { .. }
                | StorageError::Denied { .. }
                | StorageError::Settings { .. }
        )
    }
}
