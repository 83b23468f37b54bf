//! Converts panics of user code to errors with message, location and input position.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::{Arc, Mutex, Once, PoisonError};

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
        Err(panicked(context, &*payload, last.lock().unwrap_or_else(PoisonError::into_inner).take()))
    })
}

thread_local! {
    /// The last panic of an attempt on this thread; `None` outside of attempts.
    static OF_ATTEMPT: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

/// Like [`catch_panics`] for an attempt on a thread of the worker's process: its panics are not printed, and all
/// others go to the hook that was installed before the first call.
pub(super) fn catch_panics_of_thread<T>(
    context: &TaskContext,
    work: impl FnOnce() -> Result<T, TaskError>,
) -> Result<T, TaskError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(install_thread_hook);
    OF_ATTEMPT.set(Some(None));
    let worked = catch_unwind(AssertUnwindSafe(work));
    let said = OF_ATTEMPT.take().flatten();
    worked.unwrap_or_else(|payload| Err(panicked(context, &*payload, said)))
}

#[expect(clippy::disallowed_methods, reason = "forwards the panics of all other threads")]
fn install_thread_hook() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_of_attempt = OF_ATTEMPT.try_with(|last| {
            let mut last = last.borrow_mut();
            last.as_mut().map(|last| *last = Some(describe(panic))).is_some()
        });
        // A thread that is ending runs no attempt.
        if !is_of_attempt.unwrap_or(false) {
            previous(panic);
        }
    }));
}

/// Returns the error of a panic, with its location if the hook has seen it.
fn panicked(context: &TaskContext, payload: &(dyn Any + Send), said: Option<String>) -> TaskError {
    let mut message = said.unwrap_or_else(|| format!("panicked at '{}'", text_of(payload)));
    // Read only now: the body may set its exact position while the panic unwinds.
    if let Some(position) = context.position().describe() {
        message.push_str(&format!(", reading {position}"));
    }
    TaskError { record: context.position().record().map(Box::new), ..TaskError::task(message) }
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
    let mut message = format!("panicked at '{}'", text_of(panic.payload()));
    if let Some(location) = panic.location() {
        message.push_str(&format!(", {}:{}", location.file(), location.line()));
    }
    message
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a non-text value")
}
