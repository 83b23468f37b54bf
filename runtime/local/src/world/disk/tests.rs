//! The simulated disk: what survives, and that it answers as this machine does.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::{CallFault, Disk, FaultRates, FileLock, Links, Opening, RealDisk, SimDisk};

const NEW: Opening = Opening::CreateNew { mode: 0o600 };

fn write(disk: &dyn Disk, path: &str, text: &str) -> io::Result<()> {
    let mut file = disk.open(Path::new(path), Opening::CreateOrChange { mode: 0o600 })?;
    file.seek(SeekFrom::End(0))?;
    file.write_all(text.as_bytes())
}

fn sync(disk: &dyn Disk, path: &str) -> io::Result<()> {
    disk.open(Path::new(path), Opening::Change)?.sync_data()
}

fn read(disk: &dyn Disk, path: &str) -> io::Result<String> {
    let mut text = String::new();
    disk.open(Path::new(path), Opening::Read)?
        .read_to_string(&mut text)?;
    Ok(text)
}

/// Returns everything that the path has led to after power losses with many seeds.
fn left_after_power_loss(
    path: &str,
    prepare: impl Fn(&SimDisk) -> io::Result<()>,
) -> BTreeSet<Option<String>> {
    let mut left = BTreeSet::new();
    for seed in 0..200 {
        let disk = SimDisk::new(seed);
        prepare(&disk).expect("prepared");
        disk.lose_power();
        let text = match read(&disk, path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => panic!("{path}: {error}"),
        };
        left.insert(text);
    }
    left
}

fn texts<const N: usize>(texts: [Option<&str>; N]) -> BTreeSet<Option<String>> {
    texts.map(|text| text.map(str::to_owned)).into()
}

#[test]
fn synced_content_and_entries_survive_power_loss() {
    let left = left_after_power_loss("/a/file", |disk| {
        disk.make_directories(Path::new("/a"), 0o700)?;
        disk.sync_directory(Path::new("/"))?;
        write(disk, "/a/file", "one")?;
        sync(disk, "/a/file")?;
        disk.sync_directory(Path::new("/a"))
    });
    assert_eq!(left, texts([Some("one")]));
}

#[test]
fn unsynced_write_is_kept_torn_zeroed_or_lost() {
    let left = left_after_power_loss("/file", |disk| {
        write(disk, "/file", "1")?;
        sync(disk, "/file")?;
        disk.sync_directory(Path::new("/"))?;
        write(disk, "/file", "23")
    });
    let expected = [
        Some("1"),
        Some("12"),
        Some("123"),
        Some("12\0"),
        Some("1\0"),
        Some("1\0\0"),
    ];
    assert_eq!(left, texts(expected));
}

#[test]
fn synced_file_in_unsynced_directory_may_be_lost() {
    let left = left_after_power_loss("/a/file", |disk| {
        disk.make_directories(Path::new("/a"), 0o700)?;
        write(disk, "/a/file", "one")?;
        sync(disk, "/a/file")?;
        disk.sync_directory(Path::new("/a"))
    });
    assert_eq!(left, texts([None, Some("one")]));
    let left = left_after_power_loss("/file", |disk| {
        write(disk, "/file", "one")?;
        sync(disk, "/file")
    });
    assert_eq!(left, texts([None, Some("one")]));
}

#[test]
fn unsynced_rename_leaves_old_or_new_file() {
    let left = left_after_power_loss("/file", |disk| {
        for name in ["/file", "/file.new"] {
            write(disk, name, name)?;
            sync(disk, name)?;
        }
        disk.sync_directory(Path::new("/"))?;
        disk.rename(Path::new("/file.new"), Path::new("/file"))
    });
    assert_eq!(left, texts([Some("/file"), Some("/file.new")]));
    let left = left_after_power_loss("/file", |disk| {
        write(disk, "/file.new", "whole")?;
        sync(disk, "/file.new")?;
        disk.rename(Path::new("/file.new"), Path::new("/file"))?;
        disk.sync_directory(Path::new("/"))
    });
    assert_eq!(left, texts([Some("whole")]));
}

#[test]
fn failed_sync_loses_what_it_should_have_synced() {
    let disk = SimDisk::new(1);
    write(&disk, "/file", "one").expect("written");
    sync(&disk, "/file").expect("synced");
    disk.sync_directory(Path::new("/")).expect("synced");
    write(&disk, "/file", "two").expect("written");
    let file = disk
        .open(Path::new("/file"), Opening::Change)
        .expect("opened");
    disk.fail_call(disk.calls(), CallFault::Error(libc::EIO));
    file.sync_data().expect_err("it fails");
    file.sync_data().expect("nothing is left to be synced");
    drop(file);
    assert_eq!(read(&disk, "/file").expect("visible"), "onetwo");
    disk.lose_power();
    assert_eq!(read(&disk, "/file").expect("there"), "one");
}

#[test]
fn end_of_processes_keeps_writes_and_releases_locks() {
    let disk = SimDisk::new(1);
    let mut file = disk.open(Path::new("/file"), NEW).expect("opened");
    assert_eq!(file.lock().expect("answered"), FileLock::Taken);
    let other = disk
        .open(Path::new("/file"), Opening::Change)
        .expect("opened");
    assert_eq!(other.lock().expect("answered"), FileLock::HeldBy(None));
    disk.fail_call(disk.calls(), CallFault::LastCall);
    file.write_all(b"one").expect_err("the process has ended");
    disk.open(Path::new("/file"), Opening::Read)
        .expect_err("the process has ended");
    disk.kill_processes();
    file.write_all(b"two").expect_err("the file is closed");
    other.lock().expect_err("the file is closed");
    assert_eq!(read(&disk, "/file").expect("there"), "one");
    let next = disk
        .open(Path::new("/file"), Opening::Change)
        .expect("opened");
    assert_eq!(next.lock().expect("answered"), FileLock::Taken);
    // The handle of a process that has ended holds nothing.
    drop(file);
    let third = disk
        .open(Path::new("/file"), Opening::Change)
        .expect("opened");
    assert_eq!(third.lock().expect("answered"), FileLock::HeldBy(None));
    drop(next);
    assert_eq!(third.lock().expect("answered"), FileLock::Taken);
}

#[test]
fn full_disk_takes_what_fits() {
    let disk = SimDisk::new(1);
    disk.set_capacity(Some(5));
    let error = write(&disk, "/file", "seven..").expect_err("it is full");
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(read(&disk, "/file").expect("there"), "seven");
    disk.remove_file(Path::new("/file")).expect("removed");
    write(&disk, "/other", "five.").expect("there is room again");
}

/// Returns a line for each call: its result, and where the file ends.
fn trace(seed: u64) -> Vec<String> {
    let disk = SimDisk::new(seed);
    disk.set_rates(FaultRates {
        errors: 0.05,
        short: 0.3,
        stalls: (0.1, std::time::Duration::from_secs(1)),
        ..FaultRates::default()
    });
    let mut lines = Vec::new();
    for number in 0..200 {
        let path = format!("/{}", number % 7);
        let written = write(&disk, &path, "0123456789");
        let synced = sync(&disk, &path);
        let latency = disk.take_latency();
        if number % 20 == 0 {
            disk.lose_power();
        }
        let listed = disk.list(Path::new("/"));
        let text = read(&disk, &path);
        lines.push(format!(
            "{written:?} {synced:?} {latency:?} {listed:?} {text:?}"
        ));
    }
    lines
}

#[test]
fn equal_seeds_fail_and_lose_alike() {
    for seed in 0..5 {
        assert_eq!(trace(seed), trace(seed));
    }
    assert_ne!(trace(1), trace(2));
}

/// A result without what differs between machines.
fn shown<T: std::fmt::Debug>(result: io::Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}

/// Makes one random call, and shows its result.
fn act(disk: &dyn Disk, root: &Path, random: &mut Pcg64) -> String {
    let names = ["a", "b", "d/a", "d/b", "d", "e", "e/f/g", "none/x"];
    let mut draw = || -> PathBuf { root.join(names[random.random_range(0..names.len())]) };
    let path = draw();
    let other = draw();
    let opening = match random.random_range(0..5) {
        0 => Opening::Read,
        1 => Opening::Change,
        2 => Opening::CreateOrChange { mode: 0o600 },
        3 => NEW,
        _ => Opening::CreateOrEmpty { mode: 0o600 },
    };
    let length = random.random_range(0..9);
    match random.random_range(0..10) {
        0..3 => shown(disk.open(&path, opening).and_then(|mut file| {
            let locked = file.lock()?;
            if opening == Opening::Read {
                let mut text = String::new();
                file.read_to_string(&mut text)?;
                return Ok((locked, text));
            }
            file.seek(SeekFrom::Start(length))?;
            file.write_all(b"text")?;
            file.set_len(length + 2)?;
            file.sync_data()?;
            Ok((locked, format!("at {}", file.stream_position()?)))
        })),
        3 => shown(disk.list(&path).map(BTreeSet::from_iter)),
        4 => shown(disk.make_directories(&path, 0o700)),
        5 => shown(disk.rename(&path, &other)),
        6 => shown(disk.remove_file(&path)),
        7 => shown(disk.make_directory(&path, 0o700)),
        8 => shown(disk.link(&path, &other)),
        _ => {
            let stat = disk.stat(&path, Links::NotFollowed);
            shown(stat.map(|stat| (stat.kind, stat.mode))) + &shown(disk.sync_directory(root))
        }
    }
}

#[test]
fn simulated_disk_answers_as_this_machine() {
    for seed in 0..60 {
        let folder = tempfile::tempdir().expect("a folder");
        let simulated = SimDisk::new(seed);
        let mut calls = [Pcg64::seed_from_u64(seed), Pcg64::seed_from_u64(seed)];
        for number in 0..60 {
            let real = act(&RealDisk, folder.path(), &mut calls[0]);
            let answered = act(&simulated, Path::new("/"), &mut calls[1]);
            assert_eq!(real, answered, "seed {seed}, call {number}");
        }
    }
}

#[test]
fn shared_disk_shows_visible_content_without_faults() {
    let disk = SimDisk::new(1);
    let shared = disk.shared();
    write(&disk, "/file", "unsynced").expect("written");
    let calls = disk.calls();
    disk.fail_call(calls, CallFault::LastCall);
    assert_eq!(read(&shared, "/file").expect("read"), "unsynced");
    assert_eq!(disk.calls(), calls);
    write(&disk, "/file", "lost").expect_err("it was the last call");
    assert_eq!(read(&shared, "/file").expect("read"), "unsynced");
}

#[test]
fn last_call_is_reacted_to_once() {
    let disk = SimDisk::new(1);
    let reactions = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&reactions);
    disk.at_last_call(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    write(&disk, "/file", "one").expect("written");
    assert_eq!(reactions.load(Ordering::Relaxed), 0);
    disk.fail_call(disk.calls(), CallFault::LastCall);
    for _ in 0..2 {
        write(&disk, "/file", "two").expect_err("the process has ended");
        assert_eq!(reactions.load(Ordering::Relaxed), 1);
    }
}
