//! Printing that never panics. `println!` and `eprintln!` panic on a full disk or a closed pipe, so product
//! code calls these functions instead.

use std::cell::Cell;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

/// The first failed write to standard output.
static FAILURE: OnceLock<io::Error> = OnceLock::new();

thread_local! {
    static IS_SILENT: Cell<bool> = const { Cell::new(false) };
}

/// Drops what this thread would print to standard error.
#[derive(Debug)]
pub struct Silence(());

impl Silence {
    /// Lasts until the result is dropped.
    pub fn begin() -> Silence {
        IS_SILENT.set(true);
        Silence(())
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        IS_SILENT.set(false);
    }
}

/// Prints a line to standard error. A line that cannot be written is lost.
pub fn print_error(line: impl Display) {
    if IS_SILENT.get() {
        return;
    }
    // One write, so that lines of several processes do not mix.
    let line = format!("{line}\n");
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Prints text to standard output. [`finish`] reports a failure, so that the caller first does everything
/// else that it was asked to do.
pub fn print(text: impl Display) {
    let mut out = io::stdout().lock();
    printed(
        out.write_all(text.to_string().as_bytes())
            .and_then(|()| out.flush()),
    );
}

/// Keeps the result of a write to standard output for [`finish`]. A closed pipe is not a failure.
pub fn printed(result: io::Result<()>) {
    if let Err(error) = result
        && error.kind() != ErrorKind::BrokenPipe
    {
        // The first failure is the one to report.
        let _ = FAILURE.set(error);
    }
}

/// Returns the exit status of a program: 1 instead of 0 if standard output could not be written.
pub fn finish(name: &str, status: ExitCode) -> ExitCode {
    printed(io::stdout().flush());
    let Some(error) = FAILURE.get() else {
        return status;
    };
    print_error(format_args!("{name}: cannot print: {error}"));
    if status == ExitCode::SUCCESS {
        ExitCode::FAILURE
    } else {
        status
    }
}
