//! Assigns a prestarted process to an attempt: sets its environment, directory and output files.
#![allow(unsafe_code)] // changes the environment while the process has one thread

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

use napreduce_protocol::{Outfit, OutfitVariable, ToTask, read_message};
use rustix::stdio::{dup2_stderr, dup2_stdout, stderr, stdout};

use super::TaskProcessError;
use crate::marker::{PRESTART_VARIABLE, stop_being_idle};
use crate::passing::Carrying;

/// Waits for the outfit and applies it; returns false if the channel is closed first. The process must have
/// one thread.
#[expect(
    clippy::disallowed_methods,
    reason = "this process was started for one task, and is given its surroundings here"
)]
pub(super) fn put_on_outfit(stream: &UnixStream) -> Result<bool, TaskProcessError> {
    let mut carrying = Carrying::new(stream);
    let outfit = match read_message(&mut carrying) {
        Ok(Some(ToTask::Outfit(outfit))) => outfit,
        Ok(Some(_)) => return Err(TaskProcessError::OutfitExpected),
        Ok(None) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    if let [printed, complained] = &carrying.descriptors[..] {
        print_to(stdout(), printed.as_fd())?;
        dup2_stdout(printed).map_err(io::Error::from)?;
        print_to(stderr(), complained.as_fd())?;
        dup2_stderr(complained).map_err(io::Error::from)?;
    }
    let Outfit {
        variables,
        directory,
    } = outfit;
    if let Some(directory) = directory {
        env::set_current_dir(directory)?;
    }
    let prestart = OutfitVariable {
        name: PRESTART_VARIABLE.to_owned(),
        value: None,
    };
    for OutfitVariable { name, value } in variables.into_iter().chain([prestart]) {
        // SAFETY: this is the only thread of the process, as checked before Hello.
        match value {
            Some(value) => unsafe { env::set_var(name, OsString::from_vec(value)) },
            None => unsafe { env::remove_var(name) },
        }
    }
    // Optional: only listings of processes show the marker.
    let _ = stop_being_idle();
    Ok(true)
}

/// Moves text printed before the assignment to the attempt's log.
fn print_to(kept: BorrowedFd<'_>, file: BorrowedFd<'_>) -> io::Result<()> {
    let kept = File::from(kept.try_clone_to_owned()?);
    let length = kept.metadata()?.len();
    if length == 0 {
        return Ok(());
    }
    let mut printed = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    kept.read_exact_at(&mut printed, 0)?;
    io::Write::write_all(&mut File::from(file.try_clone_to_owned()?), &printed)
}
