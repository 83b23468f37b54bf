//! Printing that never panics, unlike `println!` and `eprintln!` on a full disk or a closed pipe.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// Prints a line to standard error. A line that cannot be written is lost.
pub(crate) fn print_error(line: impl Display) {
    let line = format!("{line}\n");
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Passes on the result of writing to standard output. A closed pipe is not an error.
pub(crate) fn printed(result: io::Result<()>) -> io::Result<()> {
    match result.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
