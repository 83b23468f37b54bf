//! Errors of objects, with remedies. They omit the text of responses, which may contain credentials.

use std::path::Path;

use napreduce_protocol::StorageScheme;

/// The error for an object that cannot be found, read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// An invalid name.
    #[error("invalid object name {uri}: {reason}")]
    BadUri {
        /// The name as given.
        uri: String,
        /// The problem.
        reason: String,
    },
    /// This program was built without the store.
    #[error(
        "{uri} is in {store}, which this program was built without; build it with the feature {feature} of napreduce"
    )]
    FeatureOff {
        /// The object.
        uri: String,
        /// The common name of the service.
        store: String,
        /// The feature that supports it.
        feature: &'static str,
    },
    /// The object does not exist.
    #[error("{uri} does not exist")]
    Missing {
        /// The object.
        uri: String,
    },
    /// The bucket does not exist.
    #[error(
        "{uri}: {} {bucket} does not exist; check its name, and the {} in the environment",
        if is_of_azure(uri) { "container" } else { "bucket" },
        if is_of_azure(uri) { "endpoint" } else { "endpoint and region" }
    )]
    NoBucket {
        /// The object.
        uri: String,
        /// The bucket.
        bucket: String,
    },
    /// The object was replaced or removed.
    #[error("{uri} was changed after the job began")]
    Changed {
        /// The object.
        uri: String,
    },
    /// The service denied access.
    #[error(
        "access to {uri} is denied ({answer}); check the credentials in the environment and their permissions"
    )]
    Denied {
        /// The object.
        uri: String,
        /// Status and code of the response: `403 AccessDenied`.
        answer: String,
    },
    /// No credentials were found.
    #[error("no credentials for {uri}: {reason}; {remedy}")]
    NoCredentials {
        /// The object.
        uri: String,
        /// The result of the search.
        reason: String,
        /// The settings to make.
        remedy: &'static str,
    },
    /// A permanent error response.
    #[error("{uri}: the server returned {answer}{}", with_hint(hint))]
    Refused {
        /// The object.
        uri: String,
        /// Status and code of the response.
        answer: String,
        /// A likely cause; may be empty.
        hint: &'static str,
    },
    /// The retries failed.
    #[error(
        "{uri}: {reason} ({tries} tries in {seconds} s); run the job again when the store is available"
    )]
    Unreachable {
        /// The object.
        uri: String,
        /// The last failure.
        reason: String,
        /// The number of tries.
        tries: u32,
        /// The duration in seconds.
        seconds: u64,
    },
    /// Invalid settings in the environment.
    #[error("{uri}: invalid settings in the environment: {reason}")]
    Settings {
        /// The object.
        uri: String,
        /// The problem.
        reason: String,
    },
}

fn is_of_azure(uri: &str) -> bool {
    StorageScheme::from_path(Path::new(uri)) == Some(StorageScheme::Azure)
}

fn with_hint(hint: &str) -> String {
    if hint.is_empty() {
        String::new()
    } else {
        format!("; {hint}")
    }
}

impl StorageError {
    /// Returns whether a retry may succeed later or on another machine.
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
