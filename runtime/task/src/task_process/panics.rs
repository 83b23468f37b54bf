//! Converts panics of user code to errors with message, location and input position, and ends code that can return no
//! error.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, Once};

use napreduce_protocol::{TaskError, lock};

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
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|payload| Err(panicked(context, &*payload, lock(&last).take())))
}

thread_local! {
    /// The last panic of an attempt on this thread; `None` outside of attempts.
    static OF_ATTEMPT: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

thread_local! {
    /// The error of the last [`refuse`].
    static REFUSED: Cell<Option<TaskError>> = const { Cell::new(None) };
    /// Whether [`catch_refusal`] waits for one.
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Fails the task with an error, from code that cannot return one: a panic with the message of the error.
pub fn refuse(error: TaskError) -> ! {
    let message = error.message.clone();
    REFUSED.set(Some(error));
    if CATCHES.get() {
        resume_unwind(Box::new(message));
    }
    panic!("{message}")
}

/// Returns the error of a panic if it is one of [`refuse`].
pub fn refusal(payload: &(dyn Any + Send)) -> Option<TaskError> {
    let error = REFUSED.take()?;
    if text_of(payload) == error.message {
        Some(error)
    } else {
        None
    }
}

/// Returns the error of [`refuse`], without printing it as a panic.
pub fn catch_refusal<T>(work: impl FnOnce() -> T) -> Result<T, TaskError> {
    let before = CATCHES.replace(true);
    let worked = catch_unwind(AssertUnwindSafe(work));
    CATCHES.set(before);
    worked.map_err(|panic| refusal(&*panic).unwrap_or_else(|| resume_unwind(panic)))
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

#[expect(
    clippy::disallowed_methods,
    reason = "forwards the panics of all other threads"
)]
fn install_thread_hook() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_of_attempt = OF_ATTEMPT.try_with(|last| {
            let mut last = last.borrow_mut();
            last.as_mut()
                .map(|last| *last = Some(describe(panic)))
                .is_some()
        });
        // A thread that is ending runs no attempt.
        if !is_of_attempt.unwrap_or(false) {
            previous(panic);
        }
    }));
}

/// Returns the error of a panic, with its location if the hook has seen it.
fn panicked(context: &TaskContext, payload: &(dyn Any + Send), said: Option<String>) -> TaskError {
    let mut error = refusal(payload).unwrap_or_else(|| {
        TaskError::task(said.unwrap_or_else(|| format!("panicked at '{}'", text_of(payload))))
    });
    // Read only now: the body may set its exact position while the panic unwinds.
    if let Some(position) = context.position().describe() {
        error.message.push_str(&format!(", reading {position}"));
    }
    TaskError {
        record: context.position().record().map(Box::new),
        ..error
    }
}

/// Installs a hook that stores the last panic of any thread: it ends the work, or the work passes it on with
/// `resume_unwind`.
#[expect(
    clippy::disallowed_methods,
    reason = "a task process runs one task, whose panics are reported"
)]
fn install_hook(last: Arc<Mutex<Option<String>>>) {
    let backtrace_wanted = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if backtrace_wanted {
            previous(panic);
        }
        *lock(&last) = Some(describe(panic));
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
    text.or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("a non-text value")
}
