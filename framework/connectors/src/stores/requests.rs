//! Retries. `object_store` is configured to make every request once, since it does not report the status of a
//! response; a connector records the status instead.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use napreduce_protocol::{Backoff, jittered, lock};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use tokio::time::Instant;

pub(crate) use crate::stores::failure::{Failure, innermost};
use crate::stores::figures::{Figures, READ, WRITTEN};
use crate::stores::{ObjectUri, StorageError};

/// Time during which a failing request is retried. Time in which the process was stopped does not count.
const PATIENCE: Duration = Duration::from_secs(180);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(15));
/// Timeout without any received bytes.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Maximum bytes of an error response that are searched for its code.
const ERROR_BYTES_MAX: usize = 4096;

tokio::task_local! {
    static LAST: Arc<Mutex<Option<Failure>>>;
}

/// Makes a request; returns the recorded failure.
pub(crate) async fn traced<T>(
    request: impl Future<Output = object_store::Result<T>>,
) -> Result<T, Failure> {
    let last = Arc::new(Mutex::new(None));
    let answer = LAST.scope(Arc::clone(&last), request).await;
    answer.map_err(|error| {
        let noted = lock(&last).take();
        noted.unwrap_or_else(|| Failure::of(&error))
    })
}

/// The remaining time for retries of a request.
pub(crate) struct RetryBudget {
    left: Duration,
    spent: Duration,
    backoff: Backoff,
    tries: u32,
    began: Instant,
    /// The counters to which retries are added.
    figures: &'static Figures,
}

impl RetryBudget {
    pub(crate) fn new() -> RetryBudget {
        RetryBudget::of(PATIENCE)
    }

    pub(crate) fn of(patience: Duration) -> RetryBudget {
        RetryBudget {
            left: patience,
            spent: Duration::ZERO,
            backoff: BACKOFF,
            tries: 0,
            began: Instant::now(),
            figures: &READ,
        }
    }

    /// Creates a budget for a request that writes.
    pub(crate) fn writing() -> RetryBudget {
        RetryBudget {
            figures: &WRITTEN,
            ..RetryBudget::new()
        }
    }

    /// Waits before a retry; fails if the failure is permanent or the time is used up.
    pub(crate) async fn wait(
        &mut self,
        uri: &ObjectUri,
        failure: &Failure,
    ) -> Result<(), StorageError> {
        if !failure.is_passing() {
            return Err(failure.explain(uri));
        }
        self.tries += 1;
        // Limits the time in which this process was stopped.
        let tried = self.began.elapsed().min(SILENCE_MAX);
        let pause = jittered(self.backoff.next_pause());
        self.spent += tried + pause;
        if self.spent > self.left {
            let seconds = self.spent.as_secs();
            let tries = self.tries;
            let reason = match failure {
                Failure::Answer { .. } => format!("the server returned {failure}"),
                Failure::Broken(reason) | Failure::Odd(reason) => reason.clone(),
            };
            return Err(StorageError::Unreachable {
                uri: uri.to_string(),
                reason,
                tries,
                seconds,
            });
        }
        tokio::time::sleep(pause).await;
        self.began = Instant::now();
        self.figures.count_retry();
        Ok(())
    }
}

/// Makes a request with retries.
pub(crate) async fn retried<T, F>(
    uri: &ObjectUri,
    budget: RetryBudget,
    mut request: impl FnMut() -> F,
) -> Result<T, StorageError>
where
    F: Future<Output = object_store::Result<T>>,
{
    insist(uri, budget, || traced(request())).await
}

/// Makes a request with retries that returns its own failures.
pub(crate) async fn insist<T, F>(
    uri: &ObjectUri,
    mut budget: RetryBudget,
    mut request: impl FnMut() -> F,
) -> Result<T, StorageError>
where
    F: Future<Output = Result<T, Failure>>,
{
    loop {
        match request().await {
            Ok(answer) => return Ok(answer),
            Err(failure) => budget.wait(uri, &failure).await?,
        }
    }
}

/// Connections that record failures.
#[derive(Debug)]
pub(crate) struct TracingConnector;

#[derive(Debug)]
struct TracingService(HttpClient);

impl HttpConnector for TracingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(TracingService(client)))
    }
}

#[async_trait]
impl HttpService for TracingService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = match self.0.execute(request).await {
            Ok(answer) => answer,
            Err(error) => {
                note(Failure::Broken(innermost(&error)));
                return Err(error);
            }
        };
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let (parts, body) = answer.into_parts();
        // Responses to HEAD have no body; Azure repeats the code in a header.
        let body = body.bytes().await.unwrap_or_default();
        let in_head = || {
            parts
                .headers
                .get("x-ms-error-code")?
                .to_str()
                .ok()
                .and_then(word)
        };
        note(Failure::Answer {
            status: status.as_u16(),
            code: error_code(&body).or_else(in_head),
        });
        Ok(HttpResponse::from_parts(parts, body.into()))
    }
}

pub(crate) fn note(failure: Failure) {
    // Requests for credentials are made outside of traced requests.
    let _ = LAST.try_with(|last| *lock(last) = Some(failure));
}

/// Returns the code of an error response. The rest of the response may contain credentials.
fn error_code(body: &Bytes) -> Option<String> {
    let text = String::from_utf8_lossy(&body[..body.len().min(ERROR_BYTES_MAX)]);
    let (_, rest) = text.split_once("<Code>")?;
    word(rest.split_once("</Code>")?.0)
}

fn word(code: &str) -> Option<String> {
    let is_word = !code.is_empty() && code.len() <= 64 && code.chars().all(char::is_alphanumeric);
    is_word.then(|| code.to_owned())
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
    fn error_answer_keeps_only_its_code() {
        let body = "<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIA</AWSAccessKeyId></Error>";
        assert_eq!(
            error_code(&Bytes::from(body)).as_deref(),
            Some("SignatureDoesNotMatch")
        );
        for body in [
            "",
            "<Code>",
            "<Code></Code>",
            "<Code>two words</Code>",
            "Bad Gateway",
        ] {
            assert_eq!(error_code(&Bytes::from(body)), None, "{body}");
        }
    }

    #[test]
    fn retries_end_at_deadline() {
        let tried = crate::stores::threads::wait(&uri(), async {
            let mut budget = RetryBudget::of(Duration::from_millis(400));
            let failure = answer(503, Some("SlowDown"));
            loop {
                if let Err(error) = budget.wait(&uri(), &failure).await {
                    return error.to_string();
                }
            }
        });
        let text = tried.expect("threads");
        assert!(
            text.contains("the server returned 503 SlowDown (") && text.contains(" tries in "),
            "{text}"
        );
    }
}
