//! Trying again.
//!
//! `object_store` itself makes every request once here: it does not hand out the status of an answer, which is noted down on
//! the way instead.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use tokio::time::Instant;

pub(crate) use crate::stores::failure::{Failure, innermost};
use crate::stores::figures::{Figures, READ, WRITTEN};
use crate::stores::{ObjectUri, StorageError};

/// For how long a request that fails is made again. A process may be stopped for hours in between: time that
/// nobody tried in does not count.
const PATIENCE: Duration = Duration::from_secs(180);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// An answer of which nothing comes for so long is given up.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(30);
/// What of an answer is looked at for the code of an error.
const ERROR_BYTES_MAX: usize = 4096;

tokio::task_local! {
    static LAST: Arc<Mutex<Option<Failure>>>;
}

/// Makes a request, and says why it failed as a whole.
pub(crate) async fn traced<T>(request: impl Future<Output = object_store::Result<T>>) -> Result<T, Failure> {
    let last = Arc::new(Mutex::new(None));
    let answer = LAST.scope(Arc::clone(&last), request).await;
    answer.map_err(|error| {
        let noted = last.lock().unwrap_or_else(PoisonError::into_inner).take();
        noted.unwrap_or_else(|| Failure::of(&error))
    })
}

/// How long it makes sense to go on trying.
pub(crate) struct RetryBudget {
    left: Duration,
    spent: Duration,
    pause: Duration,
    tries: u32,
    began: Instant,
    /// Where retries are counted.
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
            pause: FIRST_PAUSE,
            tries: 0,
            began: Instant::now(),
            figures: &READ,
        }
    }

    /// For a request that writes.
    pub(crate) fn writing() -> RetryBudget {
        RetryBudget { figures: &WRITTEN, ..RetryBudget::new() }
    }

    /// After a request that failed: waits until it may be made again, or says why it is not.
    pub(crate) async fn wait(&mut self, uri: &ObjectUri, failure: &Failure) -> Result<(), StorageError> {
        if !failure.is_passing() {
            return Err(failure.explain(uri));
        }
        self.tries += 1;
        // However long this process was stopped meanwhile.
        let tried = self.began.elapsed().min(SILENCE_MAX);
        let pause = jittered(self.pause);
        self.spent += tried + pause;
        if self.spent > self.left {
            let (seconds, tries) = (self.spent.as_secs(), self.tries);
            let reason = match failure {
                Failure::Answer { .. } => format!("the server answers {failure}"),
                Failure::Broken(reason) | Failure::Odd(reason) => reason.clone(),
            };
            return Err(StorageError::Unreachable { uri: uri.to_string(), reason, tries, seconds });
        }
        tokio::time::sleep(pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.began = Instant::now();
        self.figures.count_retry();
        Ok(())
    }
}

/// Between half of it and all of it: those who were refused together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    pause.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0)
}

/// Makes a request until it is answered, or no answer is to be expected.
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

/// The same of a request that says itself why it failed.
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

/// Connections that note down what went wrong.
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
        // An answer to HEAD has none; Azure says it in its head, too.
        let body = body.bytes().await.unwrap_or_default();
        let in_head = || parts.headers.get("x-ms-error-code")?.to_str().ok().and_then(word);
        note(Failure::Answer { status: status.as_u16(), code: error_code(&body).or_else(in_head) });
        Ok(HttpResponse::from_parts(parts, body.into()))
    }
}

pub(crate) fn note(failure: Failure) {
    // Requests for credentials are made outside of any that is traced, too.
    let _ = LAST.try_with(|last| *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure));
}

/// The code in the answer of an error, which is the same for everybody; what stands beside it may name keys.
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
        Failure::Answer { status, code: code.map(str::to_owned) }
    }

    #[test]
    fn error_answer_keeps_only_its_code() {
        let body = "<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIA</AWSAccessKeyId></Error>";
        assert_eq!(error_code(&Bytes::from(body)).as_deref(), Some("SignatureDoesNotMatch"));
        for body in ["", "<Code>", "<Code></Code>", "<Code>two words</Code>", "Bad Gateway"] {
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
        assert!(text.contains("the server answers 503 SlowDown") && text.contains("when tried"), "{text}");
    }
}
