//! Tests of the secret file: permissions, content and concurrent creation.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use napreduce_local::world::disk::RealDisk;
use tempfile::TempDir;

use super::*;

fn secret_file(text: &str, mode: u32) -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("secret");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    (place, path)
}

#[track_caller]
fn check_refused(path: &Path, parts: &[&str]) {
    let error = read_secret(&RealDisk, path).unwrap_err().to_string();
    for part in parts.iter().chain(&[path.to_str().unwrap()]) {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn secret_file_returns_written_secret() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("secret");
    let made = read_or_create_secret(&RealDisk, &path).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    assert_eq!(fs::read(&path).unwrap().len(), 65);
    assert_eq!(read_secret(&RealDisk, &path).unwrap().bytes(), made.bytes());
    assert_eq!(
        read_or_create_secret(&RealDisk, &path).unwrap().bytes(),
        made.bytes()
    );
    assert_eq!(
        fs::read_dir(place.path()).unwrap().count(),
        1,
        "another file than the secret was left"
    );
}

#[test]
fn secret_file_in_either_case_with_or_without_newline_is_read() {
    for text in [
        "0aFf".repeat(16),
        "0aFf".repeat(16) + "\n",
        "0aFf".repeat(16) + "\r\n",
    ] {
        let (_place, path) = secret_file(&text, 0o400);
        assert_eq!(
            read_secret(&RealDisk, &path).unwrap().bytes(),
            [0x0a, 0xff].repeat(16).as_slice()
        );
    }
}

#[test]
fn concurrent_creators_agree_on_one_secret() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("secret");
    let start = Barrier::new(8);
    let secrets: Vec<[u8; 32]> = thread::scope(|scope| {
        let make = || {
            start.wait();
            *read_or_create_secret(&RealDisk, &path).unwrap().bytes()
        };
        let makers: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
        makers
            .into_iter()
            .map(|maker| maker.join().unwrap())
            .collect()
    });
    assert!(
        secrets.iter().all(|secret| *secret == secrets[0]),
        "two secrets were made"
    );
    assert_eq!(
        fs::read_dir(place.path()).unwrap().count(),
        1,
        "another file than the secret was left"
    );
}

#[test]
fn secret_file_readable_by_others_is_refused() {
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o777] {
        let (_place, path) = secret_file(&"ab".repeat(32), mode);
        let command = format!("run: chmod 600 {}", path.display());
        check_refused(
            &path,
            &[
                "is accessible to other users",
                &format!("mode {mode:04o}"),
                &command,
            ],
        );
    }
}

#[test]
fn secret_file_of_another_user_is_refused() {
    let (_place, path) = secret_file(&"ab".repeat(32), 0o600);
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
    check_refused(&path, &["belongs to user 12345", "make your own copy"]);
}

#[test]
fn malformed_secret_is_refused_without_being_printed() {
    let cases = [
        (String::new(), "0 characters"),
        ("ab".repeat(31), "62 characters"),
        ("ab".repeat(33), "more than 64 characters"),
        ("ab".repeat(1 << 20), "more than 64 characters"),
        ("ab".repeat(31) + "zz", "invalid characters 63 and 64"),
        ("ü".repeat(32), "invalid characters 1 and 2"),
    ];
    for (text, found) in cases {
        let (_place, path) = secret_file(&text, 0o600);
        check_refused(&path, &["64 hexadecimal digits", found, "copy it again"]);
        let error = read_secret(&RealDisk, &path).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("abab"), "{error:?}");
    }
}

#[test]
fn secret_file_missing_or_irregular_is_refused() {
    let place = tempfile::tempdir().unwrap();
    check_refused(
        &place.path().join("none"),
        &["missing secret file", "copy it"],
    );
    check_refused(place.path(), &["not a regular file"]);
    let pipe = place.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    check_refused(&pipe, &["not a regular file"]);
    check_refused(&place.path().join("none/secret"), &["missing secret file"]);
}

#[test]
fn secret_debug_output_is_hidden() {
    let (_place, path) = secret_file(&"5a".repeat(32), 0o600);
    let secret = read_secret(&RealDisk, &path).unwrap();
    assert_eq!(
        format!("{secret:?} {secret:#?}"),
        "Secret(hidden) Secret(hidden)"
    );
}

#[test]
fn secret_file_creation_error_names_file() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("none/secret");
    let error = read_or_create_secret(&RealDisk, &path)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with(&format!("cannot create secret file {}: ", path.display())),
        "{error}"
    );
}
