//! A web service that counts words: each request starts a job, and any number of jobs run at once.
//!
//! ```text
//! $ cargo run -p napreduce-service -- 127.0.0.1:8080 &
//! $ curl --data-binary @README.md http://127.0.0.1:8080/jobs
//! 1
//! $ curl http://127.0.0.1:8080/jobs/1/progress    # a line for each step, until the job has ended
//! $ curl http://127.0.0.1:8080/jobs/1             # the counts, when the job has ended
//! $ curl -X DELETE http://127.0.0.1:8080/jobs/1   # cancels it
//! ```

use std::collections::HashMap;
use std::io::{Write, stderr};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Router, serve};
use futures_util::stream;
use napreduce::run::{JobHandle, Local, ProgressWatch};
use napreduce::{Dataset, Emit, Job, TaskError, words};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// Counts words; a line that begins with `!` is an error.
fn count() -> Job<(String, u64)> {
    Job::text()
        .map(
            |line: &str, out: &mut Emit<String, u64>| -> Result<(), TaskError> {
                if line.starts_with('!') {
                    return Err(TaskError::fatal(format!("cannot count {line:?}")));
                }
                words(line).for_each(|word| out.emit(word, 1));
                Ok(())
            },
        )
        .sum()
}

/// The jobs by their numbers.
#[derive(Clone, Default)]
struct Jobs(Arc<Mutex<HashMap<u32, RunningJob>>>);

/// The end of a job: its counts as text, or why it has none.
type End = Option<Result<String, String>>;

#[derive(Clone)]
struct RunningJob {
    progress: ProgressWatch,
    cancel: mpsc::Sender<()>,
    end: watch::Receiver<End>,
}

impl Jobs {
    fn find(&self, job: u32) -> Result<RunningJob, (StatusCode, String)> {
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.get(&job)
            .cloned()
            .ok_or_else(|| (StatusCode::NOT_FOUND, format!("there is no job {job}\n")))
    }
}

/// Starts a job on the text of the request.
async fn start(State(jobs): State<Jobs>, text: String) -> Result<String, (StatusCode, String)> {
    let refused =
        |error: napreduce::program::Error| (StatusCode::BAD_REQUEST, format!("{error}\n"));
    let lines = Dataset::lines(text.lines()).map_err(refused)?;
    let job = napreduce::job(count).inputs([&lines]).reduces(1);
    let handle = job.start(&Local::default().slots(1)).map_err(refused)?;
    let number = handle.id().0;
    let (cancel, cancelled) = mpsc::channel(1);
    let (ended, end) = watch::channel(None);
    let running = RunningJob {
        progress: handle.watch(),
        cancel,
        end,
    };
    jobs.0
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(number, running);
    tokio::spawn(follow(handle, cancelled, ended));
    Ok(format!("{number}\n"))
}

/// Waits for the end of a job and passes on a request to cancel it.
async fn follow(
    mut handle: JobHandle<(String, u64)>,
    mut cancelled: mpsc::Receiver<()>,
    ended: watch::Sender<End>,
) {
    let counts = loop {
        tokio::select! {
            counts = &mut handle => break counts,
            Some(()) = cancelled.recv() => handle.cancel("a request cancelled it"),
        }
    };
    let text = counts.and_then(|counts| {
        counts.fold(String::new(), |text, (word, count)| {
            text + &format!("{word}\t{count}\n")
        })
    });
    ended.send_replace(Some(text.map_err(|error| format!("{error}\n"))));
}

/// The result of a job, when it has ended.
async fn result(
    State(jobs): State<Jobs>,
    Path(job): Path<u32>,
) -> Result<String, (StatusCode, String)> {
    let mut end = jobs.find(job)?.end;
    let ended = end.wait_for(Option::is_some).await.map(|end| end.clone());
    let gone = || {
        (
            StatusCode::INTERNAL_SERVER_ERROR,
            "the job was lost\n".to_owned(),
        )
    };
    let ended = ended.ok().flatten().ok_or_else(gone)?;
    ended.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error))
}

/// The progress of a job, a line for each step, until it has ended.
async fn progress(
    State(jobs): State<Jobs>,
    Path(job): Path<u32>,
) -> Result<Body, (StatusCode, String)> {
    let watch = jobs.find(job)?.progress;
    let lines = stream::unfold(watch, |mut watch| async move {
        let progress = watch.next().await?;
        let map = progress.map;
        let reduce = progress.reduce;
        let line = format!(
            "maps {}/{} reduces {}/{}\n",
            map.done, map.tasks, reduce.done, reduce.tasks
        );
        Some((Ok::<_, std::convert::Infallible>(line), watch))
    });
    Ok(Body::from_stream(lines))
}

async fn cancel(
    State(jobs): State<Jobs>,
    Path(job): Path<u32>,
) -> Result<(), (StatusCode, String)> {
    // A job that has ended does not receive it.
    let _ = jobs.find(job)?.cancel.try_send(());
    Ok(())
}

#[tokio::main]
async fn run(address: String) -> std::io::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(address).await?;
    writeln!(stderr(), "listening on {}", listener.local_addr()?)?;
    let service = Router::new()
        .route("/jobs", post(start))
        .route("/jobs/{job}", get(result).delete(cancel))
        .route("/jobs/{job}/progress", get(progress))
        .with_state(Jobs::default());
    serve(listener, service)
        .with_graceful_shutdown(async move {
            terminated.recv().await;
        })
        .await?;
    writeln!(stderr(), "stopped")
}

fn main() -> ExitCode {
    // A task process ends here. Everything after this is the service.
    napreduce::init();
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    match run(address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The status alone tells it, if standard error is closed.
            let _ = writeln!(stderr(), "word-service: {error}");
            ExitCode::FAILURE
        }
    }
}
