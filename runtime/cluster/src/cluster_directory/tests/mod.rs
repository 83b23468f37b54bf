//! Tests of the cluster directory: its path, its permissions, and the lock that admits one coordinator.

mod crashes;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use napreduce_local::world::World;
use tempfile::TempDir;

use super::*;

#[track_caller]
fn check_resolves(flag: Option<&str>, variables: &[(&str, &str)], expected: &str) {
    let variables: BTreeMap<&str, OsString> = variables
        .iter()
        .map(|(name, value)| (*name, OsString::from(value)))
        .collect();
    let resolved = ClusterDirectory::resolve_from(flag.map(PathBuf::from), |name| {
        variables.get(name).cloned()
    });
    assert_eq!(resolved.unwrap().path(), Path::new(expected));
}

#[test]
fn flag_overrides_environment_and_default() {
    let all = [
        ("NAPREDUCE_DIR", "/named"),
        ("XDG_STATE_HOME", "/state"),
        ("HOME", "/home/me"),
    ];
    check_resolves(Some("/flag"), &all, "/flag");
    check_resolves(None, &all, "/named");
    check_resolves(None, &all[1..], "/state/napreduce");
    check_resolves(None, &all[2..], "/home/me/.local/state/napreduce");
}

#[test]
fn empty_variable_counts_as_unset() {
    let home = ("HOME", "/home/me");
    check_resolves(
        None,
        &[("NAPREDUCE_DIR", ""), ("XDG_STATE_HOME", "/state"), home],
        "/state/napreduce",
    );
    check_resolves(
        None,
        &[("XDG_STATE_HOME", "relative"), home],
        "/home/me/.local/state/napreduce",
    );
    let error = ClusterDirectory::resolve_from(None, |_| None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("pass --dir DIR or set NAPREDUCE_DIR"),
        "{error}"
    );
}

#[test]
fn relative_directory_survives_change_of_directory() {
    let here = std::env::current_dir().unwrap();
    check_resolves(Some("cluster"), &[], here.join("cluster").to_str().unwrap());
}

fn directory() -> (TempDir, ClusterDirectory) {
    let place = tempfile::tempdir().unwrap();
    let directory = ClusterDirectory::resolve(Some(place.path().join("state/cluster"))).unwrap();
    (place, directory)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[track_caller]
fn check_refused<T>(
    result: Result<T, ClusterDirectoryError>,
    directory: &ClusterDirectory,
    parts: &[&str],
) {
    let error = result.err().expect("it was not refused").to_string();
    for part in parts.iter().chain(&[directory.path().to_str().unwrap()]) {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn directory_is_created_private_with_one_secret() {
    let (_place, directory) = directory();
    let made = directory.create().unwrap();
    assert_eq!(mode(directory.path()), 0o700);
    assert_eq!(mode(&directory.secret_file()), 0o600);
    assert_eq!(directory.create().unwrap().bytes(), made.bytes());
    assert_eq!(directory.secret().unwrap().bytes(), made.bytes());
}

#[test]
fn empty_directory_is_made_private() {
    let (_place, directory) = directory();
    fs::create_dir_all(directory.path()).unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    directory.create().unwrap();
    assert_eq!(mode(directory.path()), 0o700);
}

#[test]
fn directory_open_to_others_is_refused() {
    let (_place, directory) = directory();
    directory.create().unwrap();
    for mode in [0o750, 0o705, 0o777] {
        fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        let command = format!("run: chmod 700 {}", directory.path().display());
        check_refused(
            directory.create(),
            &directory,
            &["open to others", &command],
        );
        check_refused(
            directory.secret(),
            &directory,
            &["open to others", &command],
        );
    }
}

#[test]
fn private_directory_with_foreign_files_is_refused() {
    let (_place, directory) = directory();
    fs::create_dir_all(directory.path().join("coordinator")).unwrap();
    fs::write(directory.coordinator_file(), "mine").unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
    let error = directory.create().expect_err("it was not refused");
    assert_eq!(error.exit_status(), 2);
    check_refused::<()>(
        Err(error),
        &directory,
        &[
            "is not a cluster directory",
            "choose an empty or new directory",
        ],
    );
    assert_eq!(fs::read(directory.coordinator_file()).unwrap(), b"mine");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn directory_with_configuration_or_earlier_version_is_accepted() {
    let (_place, directory) = directory();
    fs::create_dir_all(directory.path()).unwrap();
    fs::write(directory.path().join("napreduce.toml"), "").unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
    let secret = directory.create().unwrap();
    fs::create_dir(directory.coordinator_directory()).unwrap();
    fs::remove_file(directory.path().join(crate::directory_mark::MARK)).unwrap();
    assert_eq!(directory.create().unwrap().bytes(), secret.bytes());
}

#[test]
fn directory_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a directory away");
        return;
    }
    let (_place, directory) = directory();
    directory.create().unwrap();
    std::os::unix::fs::chown(directory.path(), Some(12_345), None).unwrap();
    check_refused(
        directory.secret(),
        &directory,
        &["belongs to user 12345", "--dir"],
    );
}

#[test]
fn path_to_file_is_refused() {
    let (_place, directory) = directory();
    check_refused(
        directory.secret(),
        &directory,
        &["there is no cluster directory", "nap up --dir"],
    );
    fs::create_dir_all(directory.path().parent().unwrap()).unwrap();
    fs::write(directory.path(), "").unwrap();
    check_refused(directory.create(), &directory, &["cannot"]);
    check_refused(
        directory.secret(),
        &directory,
        &["cannot use", "not a directory"],
    );
}

#[test]
fn secret_readable_by_others_is_refused() {
    let (_place, directory) = directory();
    directory.create().unwrap();
    fs::set_permissions(directory.secret_file(), Permissions::from_mode(0o644)).unwrap();
    let command = format!("run: chmod 600 {}", directory.secret_file().display());
    check_refused(directory.secret(), &directory, &[&command]);
    check_refused(directory.create(), &directory, &[&command]);
}

#[test]
fn coordinator_is_found_until_it_withdraws() {
    let (_place, directory) = directory();
    directory.create().unwrap();
    let nobody = format!(
        "start one with: nap up --dir {}",
        directory.path().display()
    );
    check_refused(
        directory.coordinator_address(),
        &directory,
        &["no coordinator is running for", &nobody],
    );
    let _lock = directory.lock_coordinator(&World::real().process).unwrap();
    directory
        .publish_coordinator("127.0.0.1:1".parse().unwrap(), &World::real())
        .unwrap();
    directory
        .publish_coordinator("127.0.0.1:4711".parse().unwrap(), &World::real())
        .unwrap();
    assert_eq!(directory.coordinator_address().unwrap(), "127.0.0.1:4711");
    let record = directory.coordinator().unwrap();
    assert_eq!(
        (record.pid, record.version.as_str()),
        (std::process::id(), env!("CARGO_PKG_VERSION"))
    );
    assert!(record.started > 1_700_000_000, "{record:?}");
    directory.withdraw_coordinator().unwrap();
    directory.withdraw_coordinator().unwrap();
    check_refused(directory.coordinator_address(), &directory, &[&nobody]);
}

#[test]
fn coordinator_on_wildcard_address_is_found_on_loopback() {
    let (_place, directory) = directory();
    directory.create().unwrap();
    for (listens, found) in [
        ("0.0.0.0:4711", "127.0.0.1:4711"),
        ("[::]:4711", "[::1]:4711"),
        ("10.1.2.3:4711", "10.1.2.3:4711"),
    ] {
        directory
            .publish_coordinator(listens.parse().unwrap(), &World::real())
            .unwrap();
        assert_eq!(directory.coordinator_address().unwrap(), found);
    }
}

#[test]
fn damaged_record_is_named() {
    let (_place, directory) = directory();
    directory.create().unwrap();
    for text in ["", "{", "{\"address\": 7}", "\u{0}"] {
        fs::write(directory.coordinator_file(), text).unwrap();
        check_refused(
            directory.coordinator_address(),
            &directory,
            &["coordinator.json is damaged", "restart the coordinator"],
        );
    }
}

/// Waits for a lock. A process that another test is starting holds a copy of every lock until it calls
/// `exec`.
#[track_caller]
fn wait_until_free(is_free: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_free() {
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "the lock is still held"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn second_coordinator_is_refused_while_first_runs() {
    let (_place, directory) = directory();
    directory.create().unwrap();
    let lock = directory.lock_coordinator(&World::real().process).unwrap();
    check_refused(
        directory.lock_coordinator(&World::real().process),
        &directory,
        &[
            "a coordinator (process ",
            ", just starting or ending) is already running for",
        ],
    );
    directory
        .publish_coordinator("127.0.0.1:4711".parse().unwrap(), &World::real())
        .unwrap();
    let running = format!("(process {} at 127.0.0.1:4711)", std::process::id());
    check_refused(
        directory.lock_coordinator(&World::real().process),
        &directory,
        &[&running, "stop it first"],
    );
    drop(lock);
    wait_until_free(|| directory.lock_coordinator(&World::real().process).is_ok());
}

#[test]
fn second_nap_up_is_refused_while_first_runs() {
    let (_place, directory) = directory();
    directory.create().unwrap();
    assert!(!directory.is_held(&World::real().process));
    // A killed coordinator left a process ID, which may belong to another process by now.
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    fs::write(directory.path().join("up.lock"), format!("{}\n", gone.id())).unwrap();
    assert!(!directory.is_held(&World::real().process));
    let lock = directory.lock_up().unwrap();
    assert!(directory.is_held(&World::real().process));
    let running = format!(
        "nap up (process {}) is already running for",
        std::process::id()
    );
    check_refused(directory.lock_up(), &directory, &[&running, "end it first"]);
    directory.lock_coordinator(&World::real().process).unwrap();
    drop(lock);
    wait_until_free(|| !directory.is_held(&World::real().process));
    wait_until_free(|| directory.lock_up().is_ok());
}

#[test]
fn running_up_is_the_process_that_holds_the_lock() {
    let (_place, directory) = directory();
    let absent = directory.running_up().expect_err("there is no directory");
    assert!(absent.is_absence(), "{absent}");
    directory.create().unwrap();
    let nobody = || {
        let error = directory.running_up().expect_err("none runs");
        assert!(error.is_absence(), "{error}");
        error.to_string()
    };
    let place = directory.path().display().to_string();
    assert_eq!(
        nobody(),
        format!(
            "no nap up is running for {place} on this host; name the directory of a running cluster with --dir"
        )
    );
    let up_lock = directory.path().join("up.lock");
    for text in ["", "0", "-1", "none", "99999999999"] {
        fs::write(&up_lock, text).unwrap();
        nobody();
    }
    // A process of another program has got the number of one that was killed.
    fs::write(&up_lock, std::process::id().to_string()).unwrap();
    nobody();
    let coordinator = directory.lock_coordinator(&World::real().process).unwrap();
    let without = format!(
        "its coordinator (process {}) was started without it",
        std::process::id()
    );
    assert!(nobody().contains(&without));
    let up = directory.lock_up().unwrap();
    let running = directory.running_up().unwrap();
    assert_eq!(running.id(), std::process::id());
    assert!(!running.wait(Duration::ZERO).unwrap());
    drop((up, coordinator));
    nobody();
}

#[test]
fn running_process_ends_by_its_signal() {
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let process = RunningProcess::open(child.id()).unwrap().expect("it runs");
    process.signal(rustix::process::Signal::TERM).unwrap();
    assert!(process.wait(Duration::from_secs(10)).unwrap());
    child.wait().unwrap();
    process.signal(rustix::process::Signal::TERM).unwrap();
    assert!(RunningProcess::open(child.id()).unwrap().is_none());
}

#[test]
fn each_worker_has_own_directory() {
    let (_place, directory) = directory();
    assert_eq!(
        directory.worker_directory("w1"),
        directory.path().join("workers/w1")
    );
    assert_eq!(
        directory.coordinator_directory(),
        directory.path().join("coordinator")
    );
}
