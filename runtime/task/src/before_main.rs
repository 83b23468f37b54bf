//! The fork server's side, which runs before the program's `main`. Each fork continues to `main` like a newly
//! executed process and is a child of the server's parent.
#![allow(unsafe_code)] // runs before main, forks, and rewrites the arguments on the stack

use std::arch::asm;
use std::ffi::{CStr, c_char, c_int};
use std::io::{self, Read, Write};
use std::mem;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::ptr;

use rustix::io::dup;
use rustix::process::{Signal, getppid, set_parent_process_death_signal, setpgid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stdin};

use crate::marker::{
    FORK_MARKER, FORK_SERVER_READY, IDLE_MARKER, PRESTART_NUMBER_DIGITS, PRESTART_VARIABLE,
};
use crate::passing::Carrying;
use crate::proc::has_one_thread;

/// Lets the calling program be a fork server: before `main` it looks for the argument that asks for it.
///
/// This adds an entry to the functions that the C library calls after loading. The entry belongs to the code of this function,
/// which is inlined into its caller, so a program that does not call it has none.
#[inline(always)]
pub fn serve_forks_before_main() {
    // SAFETY: it adds an address to another section and executes nothing here.
    unsafe {
        asm!(
            ".pushsection .init_array.00101, \"aw\", %init_array",
            ".balign {word}",
            ".dc.a {before_main}",
            ".popsection",
            word = const size_of::<usize>(),
            before_main = sym before_main,
            options(nomem, nostack, preserves_flags),
        );
    }
}

/// The C library calls this with the program's arguments, before most other initializers. The standard library's
/// initializer, which reads the arguments in the same way, runs earlier. A program with several entries calls it several
/// times: a fork has another argument by then.
extern "C" fn before_main(count: c_int, arguments: *mut *mut c_char) {
    if count != 3 {
        return;
    }
    // SAFETY: the array has as many strings as there are arguments, and they do not change before main.
    let (marker, parent) = unsafe { (*arguments.add(1), CStr::from_ptr(*arguments.add(2))) };
    // SAFETY: as above.
    if unsafe { CStr::from_ptr(marker) }.to_bytes() != FORK_MARKER.as_bytes() {
        return;
    }
    let parent = parent.to_str().ok().and_then(|parent| parent.parse().ok());
    match serve(parent) {
        Ok(Some(number)) => {
            // SAFETY: the two are of the same length, and the arguments can be written to.
            unsafe {
                ptr::copy_nonoverlapping(IDLE_MARKER.as_ptr(), marker.cast(), IDLE_MARKER.len())
            };
            write_number(number);
        }
        // `main` finds the marker and sends Hello, from which the spawner detects that it cannot fork.
        Ok(None) => {}
        // The spawner has ended, or forks are impossible; there is nothing to clean up.
        // SAFETY: it ends this process.
        Err(_) => unsafe { libc::_exit(1) },
    }
}

/// Forks on each request. Returns in each child with its number, or `None` if this process cannot fork.
fn serve(parent: Option<i32>) -> io::Result<Option<u64>> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if parent.is_none() || getppid().map(|now| now.as_raw_nonzero().get()) != parent {
        return Err(io::ErrorKind::NotConnected.into());
    }
    let (true, Some(tid)) = (has_one_thread()?, thread_id_place()) else {
        return Ok(None);
    };
    let mut control = UnixStream::from(dup(stdin())?);
    control.write_all(FORK_SERVER_READY)?;
    loop {
        let mut number = [0; 8];
        let mut carrying = Carrying::new(&control);
        carrying.read_exact(&mut number)?;
        let descriptors = carrying.descriptors;
        let forked = fork(tid);
        if let Ok(None) = forked {
            become_child(&descriptors)?;
            return Ok(Some(u64::from_le_bytes(number)));
        }
        let answer = match forked {
            Ok(child) => child.unwrap_or_default(),
            Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
        };
        control.write_all(&answer.to_le_bytes())?;
    }
}

/// Moves this process into its own group and installs its standard input, output and error.
fn become_child(descriptors: &[OwnedFd]) -> io::Result<()> {
    let [input, output, error] = descriptors else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    setpgid(None, None)?;
    dup2_stdin(input)?;
    dup2_stdout(output)?;
    dup2_stderr(error)?;
    Ok(())
}

/// Returns the address where the C library keeps the id of this thread, which must be updated in a child;
/// `None` if the kernel does not report it.
fn thread_id_place() -> Option<u64> {
    let mut place: u64 = 0;
    // SAFETY: the kernel writes one address to this variable.
    let result = unsafe { libc::prctl(libc::PR_GET_TID_ADDRESS, &raw mut place) };
    (result == 0 && place != 0).then_some(place)
}

/// Forks as the C library does in a process with one thread, but makes the child a sibling: its parent is
/// this process's own. Returns `None` in the child.
fn fork(tid: u64) -> io::Result<Option<i32>> {
    // SAFETY: all zero is a valid value of each of its numbers.
    let mut wanted: libc::clone_args = unsafe { mem::zeroed() };
    let flags = libc::CLONE_PARENT | libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID;
    wanted.flags = u64::from(flags.unsigned_abs());
    wanted.child_tid = tid;
    let mut head = ptr::null_mut::<u8>();
    let mut length = 0_usize;
    // SAFETY: the kernel writes an address and a length to these variables.
    let robust =
        unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut length) };
    // SAFETY: this process has one thread, so no lock is held and all of its memory is consistent in the
    // child, which continues here.
    let child = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw mut wanted,
            size_of::<libc::clone_args>(),
        )
    };
    match child {
        0 if robust == 0 && !head.is_null() => {
            // SAFETY: the list is at the same address as in the parent; the kernel clears its registration in
            // a child.
            unsafe { libc::syscall(libc::SYS_set_robust_list, head, length) };
            Ok(None)
        }
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        child => i32::try_from(child).map(Some).map_err(io::Error::other),
    }
}

/// Writes the number into the initial environment, which the kernel shows to other processes.
fn write_number(number: u64) {
    let name = std::ffi::CString::new(PRESTART_VARIABLE).unwrap_or_default();
    // SAFETY: there is one thread, and it does not change the environment during the lookup.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return;
    }
    // SAFETY: the value of a variable is terminated by a zero byte.
    let length = unsafe { CStr::from_ptr(value) }.to_bytes().len();
    let digits = format!("{number:0PRESTART_NUMBER_DIGITS$}");
    if let Some(start) = length.checked_sub(PRESTART_NUMBER_DIGITS) {
        // SAFETY: the copied bytes are the end of the variable, which is writable.
        unsafe {
            ptr::copy_nonoverlapping(
                digits.as_ptr(),
                value.add(start).cast(),
                PRESTART_NUMBER_DIGITS,
            )
        };
    }
}
