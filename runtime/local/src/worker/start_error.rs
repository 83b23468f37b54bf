//! Explains why a program could not be executed on this host.

use std::io;
use std::path::Path;

use napreduce_engine::FaultPlace;
use napreduce_protocol::{TaskError, is_limit};
use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::process::Executable;

/// Returns the error of an attempt whose process could not be started. It is retryable, since another worker
/// may succeed.
pub(super) fn explain_start(
    error: &io::Error,
    program: Option<&Executable>,
    host: Option<&str>,
) -> TaskError {
    let message = match (program, host) {
        (Some(program), Some(host)) => {
            let why = explain(error, &program.path);
            let path = program.path.display();
            format!("host {host} cannot execute the job's program as {path}: {why}")
        }
        (_, Some(host)) => format!("host {host} cannot start a task process: {error}"),
        (_, None) => format!("cannot start a task process: {error}"),
    };
    let place = if is_limit(error) {
        FaultPlace::LocalLimit
    } else {
        FaultPlace::ProgramFile
    };
    TaskError::retryable(message).at(place)
}

fn explain(error: &io::Error, path: &Path) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied if is_mounted_noexec(path) => {
            format!(
                "{error}: its file system is mounted noexec; use a worker directory on another file system"
            )
        }
        io::ErrorKind::PermissionDenied => {
            format!(
                "{error}: execution is not permitted there; check the permissions of the worker's directory"
            )
        }
        io::ErrorKind::NotFound if path.is_file() => format!(
            "{error}: the file exists, but its loader does not; build the program for this system, or \
             statically"
        ),
        io::ErrorKind::NotFound => format!("{error}; was the worker's directory changed?"),
        _ if error.raw_os_error() == Some(libc::ENOEXEC) => {
            format!("{error}: not a program for this system; was it built for another one?")
        }
        _ => error.to_string(),
    }
}

fn is_mounted_noexec(path: &Path) -> bool {
    statvfs(path).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use crate::process::{Launch, Processes, Spawner};

    use super::*;

    /// Returns the message for a file with this content and mode.
    async fn message_for(content: &[u8], mode: u32) -> String {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("program");
        fs::write(&path, content).expect("written");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("changed");
        let program = Executable {
            path,
            name: "program".into(),
        };
        let launch = Launch {
            program: Some(program.clone()),
            ..Launch::default()
        };
        let started = Spawner::for_one_job(false, 0, 0).start(launch).await;
        let error = started.expect_err("it cannot be executed");
        explain_start(&error, Some(&program), Some("here")).message
    }

    #[tokio::test(flavor = "current_thread")]
    async fn start_error_names_program_and_host() {
        let denied = message_for(b"\x7fELF", 0o600).await;
        assert!(
            denied.starts_with("host here cannot execute the job's program as /"),
            "{denied}"
        );
        assert!(
            denied.contains("check the permissions of the worker's directory"),
            "{denied}"
        );
        let damaged = message_for(b"\x7fELF and nothing more", 0o700).await;
        assert!(
            damaged.contains("not a program for this system"),
            "{damaged}"
        );
        let homeless = message_for(b"#!/nowhere/at-all\n", 0o700).await;
        assert!(homeless.contains("its loader does not"), "{homeless}");
    }
}
