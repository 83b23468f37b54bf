//! The file of the cluster's secret (64 hexadecimal digits, readable by its owner only), and keys derived
//! from it.

use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use blake2::Blake2sMac256;
use blake2::digest::{FixedOutput, Mac};
use napreduce_engine::JobId;
use napreduce_local::world::disk::{Disk, DiskFile, Opening};
use napreduce_protocol::{SECRET_BYTES, Secret};
use thiserror::Error;
use zeroize::Zeroizing;

const DIGITS: usize = 2 * SECRET_BYTES;

/// An error of a secret file.
#[derive(Debug, Error)]
pub enum SecretError {
    #[error("missing secret file {}; copy it from the cluster directory of the coordinator", .path.display())]
    Missing { path: PathBuf },
    #[error(
        "secret file {} is accessible to other users (mode {mode:04o}); run: chmod 600 {}",
        .path.display(), .path.display()
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error(
        "secret file {} belongs to user {owner}, not to user {user}; make your own copy",
        .path.display()
    )]
    WrongOwner {
        path: PathBuf,
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    #[error(
        "invalid secret file {} ({found}): expected {DIGITS} hexadecimal digits; copy it again from the coordinator",
        .path.display()
    )]
    Malformed {
        path: PathBuf,
        /// A description of the content that does not reveal it.
        found: String,
    },
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl SecretError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SecretError + use<> {
        let path = path.to_owned();
        move |source| SecretError::Io {
            doing,
            path,
            source,
        }
    }
}

/// Reads a secret file; fails if other users may read it.
pub fn read_secret(disk: &dyn Disk, path: &Path) -> Result<Secret, SecretError> {
    let file = match disk.open(path, Opening::ReadLinked) {
        Ok(file) => file,
        Err(error) => {
            let path = path.to_owned();
            return Err(match error.kind() {
                io::ErrorKind::NotFound => SecretError::Missing { path },
                io::ErrorKind::InvalidInput => SecretError::Malformed {
                    path,
                    found: "not a regular file".to_owned(),
                },
                _ => SecretError::io("open secret file", &path)(error),
            });
        }
    };
    check_privacy(&*file, path)?;
    // One byte more than a valid file with any newline, to detect longer ones.
    let mut text = Zeroizing::new(Vec::with_capacity(DIGITS + 3));
    file.take(DIGITS as u64 + 3)
        .read_to_end(&mut text)
        .map_err(SecretError::io("read secret file", path))?;
    parse(text.trim_ascii_end()).map_err(|found| SecretError::Malformed {
        path: path.to_owned(),
        found,
    })
}

/// Reads a secret file, or creates it with a new secret. Concurrent callers get the same secret.
pub fn read_or_create_secret(disk: &dyn Disk, path: &Path) -> Result<Secret, SecretError> {
    match read_secret(disk, path) {
        Err(SecretError::Missing { .. }) => {}
        read => return read,
    }
    let secret = Secret::generate().map_err(SecretError::io("create secret file", path))?;
    match write_new(disk, &secret, path) {
        Ok(()) => Ok(secret),
        // Another process created the file first; use its secret.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_secret(disk, path),
        Err(error) => Err(SecretError::io("create secret file", path)(error)),
    }
}

/// Writes the file atomically; fails if it exists.
fn write_new(disk: &dyn Disk, secret: &Secret, path: &Path) -> io::Result<()> {
    let mut unique = [0; 8];
    getrandom::fill(&mut unique)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:016x}.new", u64::from_le_bytes(unique)));
    let unfinished = PathBuf::from(name);
    let mut text = Zeroizing::new(String::with_capacity(DIGITS + 1));
    for byte in secret.bytes() {
        write!(text, "{byte:02x}").map_err(io::Error::other)?;
    }
    text.push('\n');
    let file = disk.open(&unfinished, Opening::CreateNew { mode: 0o600 })?;
    let linked = write_and_link(disk, file, text.as_bytes(), &unfinished, path);
    // The file has its name by now, or is useless.
    let removed = disk.remove_file(&unfinished);
    linked?;
    removed?;
    disk.sync_parent(path)
}

/// Writes and syncs an unfinished file, then links it to its path; fails if the path exists.
fn write_and_link(
    disk: &dyn Disk,
    mut file: Box<dyn DiskFile>,
    text: &[u8],
    unfinished: &Path,
    path: &Path,
) -> io::Result<()> {
    file.write_all(text)?;
    file.sync_data()?;
    disk.link(unfinished, path)
}

/// Returns the token that proves that a task belongs to a job. It reveals neither the secret nor other
/// tokens: keyed BLAKE2s (RFC 7693) of a fixed text and the job's number.
#[must_use]
pub fn job_token(secret: &Secret, job: JobId) -> Secret {
    let mut keyed =
        Blake2sMac256::new_from_slice(secret.bytes()).expect("a key of 32 bytes is allowed");
    keyed.update(b"napreduce: the tasks of job ");
    keyed.update(&job.0.to_le_bytes());
    let mut token = Zeroizing::new([0; SECRET_BYTES]);
    keyed.finalize_into((&mut *token).into());
    token.into()
}

/// Checks owner and mode of the open file, not of the path, which could be replaced meanwhile.
fn check_privacy(file: &dyn DiskFile, path: &Path) -> Result<(), SecretError> {
    let stat = file
        .stat()
        .map_err(SecretError::io("inspect secret file", path))?;
    let path = path.to_owned();
    let user = rustix::process::geteuid().as_raw();
    if stat.owner != user {
        return Err(SecretError::WrongOwner {
            path,
            owner: stat.owner,
            user,
        });
    }
    let mode = stat.mode;
    if mode & 0o077 != 0 {
        return Err(SecretError::Exposed { path, mode });
    }
    Ok(())
}

/// Parses the digits of a secret. The error describes the text without revealing it.
fn parse(text: &[u8]) -> Result<Secret, String> {
    if text.len() != DIGITS {
        return Err(if text.len() > DIGITS {
            format!("more than {DIGITS} characters")
        } else {
            format!("{} characters", text.len())
        });
    }
    let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
    for (index, (byte, pair)) in bytes.iter_mut().zip(text.chunks_exact(2)).enumerate() {
        let (Some(high), Some(low)) = (digit_value(pair[0]), digit_value(pair[1])) else {
            return Err(format!(
                "invalid characters {} and {}",
                2 * index + 1,
                2 * index + 2
            ));
        };
        *byte = high << 4 | low;
    }
    Ok(bytes.into())
}

/// Returns the value of a hexadecimal digit.
fn digit_value(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}
