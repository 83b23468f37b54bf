//! Converts panics of user code to errors with message, location and input position.

use std::any::Any;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use napreduce_protocol::TaskError;

use crate::context::TaskContext;

/// Runs user code; a panic becomes the error of the task, such as
/// `panicked at 'bad row', src/bin/logs.rs:41, reading data/a.log byte 1048576`.
pub fn catch_panics<T>(
    context: &Arc<TaskContext>,
    work: impl FnOnce() -> Result<T, TaskError>,
) -> Result<T, TaskError> {
    let last = Arc::new(Mutex::new(None));
    install_hook(Arc::clone(&last));
    // After a panic, only atomics and the position are read.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let said = last.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut message = said.unwrap_or_else(|| format!("panicked at '{}'", text_of(&*payload)));
        // Read only now: the body may set its exact position while the panic unwinds.
        if let Some(position) = context.position().describe() {
            message.push_str(&format!(", reading {position}"));
        }
        Err(TaskError::task(message))
    })
}

/// Installs a hook that stores the last panic of any thread: it ends the work, or the work passes it on with
/// `resume_unwind`.
#[expect(clippy::disallowed_methods, reason = "a task process runs one task, whose panics are reported")]
fn install_hook(last: Arc<Mutex<Option<String>>>) {
    let backtrace_wanted = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if backtrace_wanted {
            previous(panic);
        }
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(describe(panic));
    }));
}

fn describe(panic: &PanicHookInfo<'_>) -> String {
    let mut said = format!("panicked at '{}'", text_of(panic.payload()));
    if let Some(location) = panic.location() {
        said.push_str(&format!(", {}:{}", location.file(), location.line()));
    }
    said
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a non-text value")
}
