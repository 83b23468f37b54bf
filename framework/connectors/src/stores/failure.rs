//! Failed requests, and their meaning for the caller.

use std::error::Error;
use std::fmt;

use napreduce_protocol::StorageScheme;
use object_store::client::HttpError;

use crate::stores::{ObjectUri, StorageError};

/// The reason of a failed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server returned an error.
    Answer { status: u16, code: Option<String> },
    /// The response is missing or incomplete.
    Broken(String),
    /// The response is invalid, or the request could not be made.
    Odd(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Answer {
                status,
                code: Some(code),
            } => write!(formatter, "{status} {code}"),
            Failure::Answer { status, code: None } => write!(formatter, "{status}"),
            Failure::Broken(reason) | Failure::Odd(reason) => formatter.write_str(reason),
        }
    }
}

impl Failure {
    /// Converts the error of a request that is not traced.
    pub(crate) fn of(error: &object_store::Error) -> Failure {
        let status = match error {
            object_store::Error::NotFound { .. } => 404,
            object_store::Error::Precondition { .. }
            | object_store::Error::AlreadyExists { .. } => 412,
            object_store::Error::PermissionDenied { .. } => 403,
            object_store::Error::Unauthenticated { .. } => 401,
            object_store::Error::InvalidPath { .. } => return Failure::Odd(error.to_string()),
            _ if is_of_connection(error) => return Failure::Broken(innermost(error)),
            _ => {
                let reason = innermost(error);
                return answer_in_list(&reason).unwrap_or(Failure::Odd(reason));
            }
        };
        Failure::Answer { status, code: None }
    }

    /// Returns whether a retry may succeed.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            // Another process is writing the same object.
            Failure::Answer { status: 409, code } => {
                matches!(
                    code.as_deref(),
                    Some("ConditionalRequestConflict" | "OperationAborted")
                )
            }
            Failure::Answer { status, .. } => matches!(status, 408 | 429 | 500..=599),
            Failure::Broken(_) => true,
            Failure::Odd(_) => false,
        }
    }

    /// Returns the error for users.
    pub(crate) fn explain(&self, uri: &ObjectUri) -> StorageError {
        let object = uri.to_string();
        let answer = self.to_string();
        let Failure::Answer { status, code } = self else {
            let answer = format!("an unexpected response: {answer}");
            return StorageError::Refused {
                uri: object,
                answer,
                hint: "",
            };
        };
        match (status, code.as_deref()) {
            (404, Some("NoSuchBucket" | "ContainerNotFound")) => uri.no_bucket(),
            (404, _) => StorageError::Missing { uri: object },
            (304 | 412 | 416, _) | (409, Some("BlobAlreadyExists")) => {
                StorageError::Changed { uri: object }
            }
            (401 | 403, _) | (409, Some("PublicAccessNotPermitted")) => StorageError::Denied {
                uri: object,
                answer,
            },
            (300..=399, _) | (400, None | Some("AuthorizationHeaderMalformed"))
                if uri.scheme() == StorageScheme::S3 =>
            {
                let hint = "the bucket may be in another region: set AWS_REGION";
                StorageError::Refused {
                    uri: object,
                    answer,
                    hint,
                }
            }
            _ => StorageError::Refused {
                uri: object,
                answer,
                hint: "",
            },
        }
    }
}

/// Objects are deleted in batches: the response is a success and contains the result of each. The library
/// reports these results only in its error text.
fn answer_in_list(reason: &str) -> Option<Failure> {
    let (_, code) = reason.rsplit_once("(code: ")?;
    let code = code.strip_suffix(')')?;
    let status = match code {
        "AccessDenied" => 403,
        "InternalError" => 500,
        "ServiceUnavailable" | "SlowDown" => 503,
        // Azure returns the status.
        _ => {
            return Some(Failure::Answer {
                status: code.parse().ok()?,
                code: None,
            });
        }
    };
    Some(Failure::Answer {
        status,
        code: Some(code.to_owned()),
    })
}

/// Returns whether a connection failed, so that a retry may succeed.
fn is_of_connection(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(current) = next {
        if current.is::<HttpError>() {
            return true;
        }
        next = current.source();
    }
    false
}

/// Returns the innermost error in lower case, without the request.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let text = last.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_lowercase().chain(letters).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn uri() -> ObjectUri {
        ObjectUri::parse(Path::new("s3://books/moby.txt")).expect("a name")
    }

    fn answer(status: u16, code: Option<&str>) -> Failure {
        Failure::Answer {
            status,
            code: code.map(str::to_owned),
        }
    }

    #[test]
    fn only_transient_failures_are_retried() {
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(answer(status, None).is_passing(), "{status}");
        }
        assert!(answer(409, Some("ConditionalRequestConflict")).is_passing());
        assert!(!answer(409, Some("BlobAlreadyExists")).is_passing());
        for status in [301, 304, 400, 401, 403, 404, 409, 412, 416] {
            assert!(!answer(status, None).is_passing(), "{status}");
        }
        assert!(Failure::Broken("connection reset".to_owned()).is_passing());
        assert!(!Failure::Odd("no such key is read".to_owned()).is_passing());
    }

    #[test]
    fn permanent_failures_name_object_and_remedy() {
        for (failure, expected) in [
            (
                answer(404, Some("NoSuchKey")),
                "s3://books/moby.txt does not exist",
            ),
            (
                answer(404, Some("NoSuchBucket")),
                "bucket books does not exist; check its name",
            ),
            (answer(412, None), "was changed after the job began"),
            (
                answer(403, Some("AccessDenied")),
                "is denied (403 AccessDenied); check the credentials",
            ),
            (answer(301, None), "AWS_REGION"),
            (answer(400, None), "the server returned 400"),
        ] {
            let text = failure.explain(&uri()).to_string();
            assert!(
                text.contains(expected) && text.contains("s3://books/moby.txt"),
                "{text}"
            );
        }
        let azure = ObjectUri::parse(Path::new("abfss://books@a.dfs.core.windows.net/b.txt"))
            .expect("a name");
        for (failure, expected) in [
            (
                answer(404, Some("ContainerNotFound")),
                "container books@a.dfs.core.windows.net does not exist; check",
            ),
            (
                answer(409, Some("BlobAlreadyExists")),
                "was changed after the job began",
            ),
            (
                answer(409, Some("PublicAccessNotPermitted")),
                "is denied (409 PublicAccessNotPermitted)",
            ),
            (answer(400, None), "the server returned 400"),
        ] {
            let text = failure.explain(&azure).to_string();
            assert!(
                text.contains(expected) && !text.contains("AWS") && !text.contains("region"),
                "{text}"
            );
        }
    }

    #[test]
    fn batch_delete_reports_each_object() {
        let failure = |text: &str| {
            let source = text.to_owned().into();
            Failure::of(&object_store::Error::Generic {
                store: "store",
                source,
            })
        };
        let busy = "Bulk delete request failed for key out/a: Server Busy (code: 503)";
        assert_eq!(failure(busy), answer(503, None));
        let slow = "DeleteObjects request failed for key out/a: Reduce your rate. (code: SlowDown)";
        assert_eq!(failure(slow), answer(503, Some("SlowDown")));
        let other = "DeleteObjects request failed for key out/a: No. (code: InvalidArgument)";
        assert!(!failure(other).is_passing());
        let odd = "Got invalid bulk delete response: missing Content-Type";
        assert_eq!(failure(odd), Failure::Odd(odd.replace("Got", "got")));
    }
}
