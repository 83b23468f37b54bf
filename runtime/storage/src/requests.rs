//! Trying again, and what the answers to requests mean.
//!
//! Owns for how long and how often a request is made again, and which answers are final. `object_store` itself makes every
//! request once here: it does not hand out the status of an answer, which is noted down on the way instead. Does not own what
//! is asked.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use napreduce_protocol::StorageScheme;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use tokio::time::Instant;

use crate::figures::{Figures, READ, WRITTEN};
use crate::{ObjectUri, StorageError};

/// For how long a request that fails is made again. A process may be stopped for hours in between: time that nobody tried in
/// does not count.
const PATIENCE: Duration = Duration::from_secs(180);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// An answer of which nothing comes for so long is given up.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// What of an answer is looked at for the code of an error.
const ERROR_BYTES_MAX: usize = 4096;

/// Why a request has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server said so.
    Answer { status: u16, code: Option<String> },
    /// No answer, or not all of it.
    Broken(String),
    /// An answer that makes no sense, or a request that could not be made.
    Odd(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Answer { status, code: Some(code) } => write!(formatter, "{status} {code}"),
            Failure::Answer { status, code: None } => write!(formatter, "{status}"),
            Failure::Broken(reason) | Failure::Odd(reason) => formatter.write_str(reason),
        }
    }
}

impl Failure {
    /// Of a request that no connection was made for.
    fn of(error: &object_store::Error) -> Failure {
        let status = match error {
            object_store::Error::NotFound { .. } => 404,
            object_store::Error::Precondition { .. } | object_store::Error::AlreadyExists { .. } => 412,
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

    /// Whether the same request may be answered another time.
    fn is_passing(&self) -> bool {
        match self {
            // Somebody else writes the same object at this moment.
            Failure::Answer { status: 409, code } => {
                matches!(code.as_deref(), Some("ConditionalRequestConflict" | "OperationAborted"))
            }
            Failure::Answer { status, .. } => matches!(status, 408 | 429 | 500..=599),
            Failure::Broken(_) => true,
            Failure::Odd(_) => false,
        }
    }

    /// What it means that an object, or a bucket, is not handed out.
    fn explain(&self, uri: &ObjectUri) -> StorageError {
        let (object, answer) = (uri.to_string(), self.to_string());
        let Failure::Answer { status, code } = self else {
            let answer = format!("what is not understood: {answer}");
            return StorageError::Refused { uri: object, answer, hint: "" };
        };
        match (status, code.as_deref()) {
            (404, Some("NoSuchBucket" | "ContainerNotFound")) => uri.no_bucket(),
            (404, _) => StorageError::Missing { uri: object },
            (304 | 412 | 416, _) | (409, Some("BlobAlreadyExists")) => StorageError::Changed { uri: object },
            (401 | 403, _) | (409, Some("PublicAccessNotPermitted")) => {
                StorageError::Denied { uri: object, answer }
            }
            (300..=399, _) | (400, None | Some("AuthorizationHeaderMalformed"))
                if uri.scheme() == StorageScheme::S3 =>
            {
                let hint = "the bucket may be in another region: set AWS_REGION";
                StorageError::Refused { uri: object, answer, hint }
            }
            _ => StorageError::Refused { uri: object, answer, hint: "" },
        }
    }
}

/// Objects are removed by lists: the answer is a good one, and says inside what became of each. The library hands that out in
/// words alone.
fn answer_in_list(reason: &str) -> Option<Failure> {
    let (_, code) = reason.rsplit_once("(code: ")?;
    let code = code.strip_suffix(')')?;
    let status = match code {
        "AccessDenied" => 403,
        "InternalError" => 500,
        "ServiceUnavailable" | "SlowDown" => 503,
        // Azure says the status itself.
        _ => return Some(Failure::Answer { status: code.parse().ok()?, code: None }),
    };
    Some(Failure::Answer { status, code: Some(code.to_owned()) })
}

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

/// Whether an answer broke off, which may end otherwise another time.
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

/// What an error is about in the end, in lower case and without what was asked.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let text = last.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
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
    mut budget: RetryBudget,
    mut request: impl FnMut() -> F,
) -> Result<T, StorageError>
where
    F: Future<Output = object_store::Result<T>>,
{
    loop {
        match traced(request()).await {
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

fn note(failure: Failure) {
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
    fn what_may_pass_is_tried_again_and_nothing_else() {
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
    fn final_answers_name_the_object_and_what_to_do() {
        for (failure, said) in [
            (answer(404, Some("NoSuchKey")), "s3://books/moby.txt does not exist"),
            (answer(404, Some("NoSuchBucket")), "there is no bucket books; check its name"),
            (answer(412, None), "no longer the version"),
            (answer(403, Some("AccessDenied")), "is refused (403 AccessDenied); check the credentials"),
            (answer(301, None), "AWS_REGION"),
            (answer(400, None), "the server answered 400"),
        ] {
            let text = failure.explain(&uri()).to_string();
            assert!(text.contains(said) && text.contains("s3://books/moby.txt"), "{text}");
        }
        let azure =
            ObjectUri::parse(Path::new("abfss://books@a.dfs.core.windows.net/b.txt")).expect("a name");
        for (failure, said) in [
            (
                answer(404, Some("ContainerNotFound")),
                "there is no container books@a.dfs.core.windows.net; check",
            ),
            (answer(409, Some("BlobAlreadyExists")), "no longer the version"),
            (answer(409, Some("PublicAccessNotPermitted")), "is refused (409 PublicAccessNotPermitted)"),
            (answer(400, None), "the server answered 400"),
        ] {
            let text = failure.explain(&azure).to_string();
            assert!(text.contains(said) && !text.contains("AWS") && !text.contains("region"), "{text}");
        }
    }

    #[test]
    fn what_became_of_an_object_in_a_list_is_an_answer_of_its_own() {
        let failure = |text: &str| {
            let source = text.to_owned().into();
            Failure::of(&object_store::Error::Generic { store: "store", source })
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

    #[test]
    fn only_the_code_of_an_answer_is_kept() {
        let body = "<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIA</AWSAccessKeyId></Error>";
        assert_eq!(error_code(&Bytes::from(body)).as_deref(), Some("SignatureDoesNotMatch"));
        for body in ["", "<Code>", "<Code></Code>", "<Code>two words</Code>", "Bad Gateway"] {
            assert_eq!(error_code(&Bytes::from(body)), None, "{body}");
        }
    }

    #[test]
    fn trying_ends_when_no_time_is_left() {
        let tried = crate::threads::wait(async {
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
