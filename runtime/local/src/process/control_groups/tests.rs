//! Tests with real control groups, where the kernel permits them.

use std::process::Command;

use super::hierarchy::group_of;
use super::*;

/// Creates groups for this test; prints a line and returns `None` if the kernel does not permit any.
fn groups() -> Option<Arc<ControlGroups>> {
    match ControlGroups::create() {
        Ok(groups) => Some(groups),
        Err(why) => {
            eprintln!("skipped: no control groups can be made here: {why}");
            None
        }
    }
}

fn hungry(group: &ControlGroup, script: &str) -> std::process::ExitStatus {
    let script = format!("read go; {script}");
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("a shell");
    group.admit(Pid::from_child(&child)).expect("admitted");
    drop(child.stdin.take());
    child.wait().expect("reaped")
}

#[test]
fn process_over_group_limit_is_killed_and_group_reused() {
    let Some(groups) = groups() else { return };
    let small = groups.take(32 << 20).expect("a group");
    let other = groups.take(256 << 20).expect("another group");
    assert_ne!(small.number, other.number);
    let status = hungry(
        &small,
        "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}",
    );
    assert!(!status.success(), "it held 200 MB");
    assert_eq!(
        (small.ran_out(), other.ran_out()),
        (Some(OutOfMemory::Group), None)
    );
    assert!(hungry(&other, "true").success());
    let number = small.number;
    drop(small);
    let again = groups.take(64 << 20).expect("a group");
    assert_eq!(again.number, number);
    assert_eq!(
        again.ran_out(),
        None,
        "what happened to an earlier attempt does not count"
    );
}

#[test]
fn group_limit_is_set_after_process_entered() {
    let Some(groups) = groups() else { return };
    let script = "read go; x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut group = groups.take_ahead(Pid::from_child(&child)).expect("a group");
    assert_eq!(group.members(), [Pid::from_child(&child)]);
    assert!(group.is_current());
    group.limit_to(32 << 20).expect("limited");
    drop(child.stdin.take());
    assert!(!child.wait().expect("reaped").success(), "it held 200 MB");
    assert_eq!(group.ran_out(), Some(OutOfMemory::Group));
}

#[test]
fn kill_for_outer_limit_is_not_the_groups_own() {
    let Some(groups) = groups() else { return };
    let group = groups.take(512 << 20).expect("a group");
    let folder = &group.hierarchy.folders(group.number)[0];
    let outer = folder.parent().expect("the folder of the worker");
    let limit = if groups.version() == 1 {
        "memory.limit_in_bytes"
    } else {
        "memory.max"
    };
    write(outer, limit, "33554432").expect("limited");
    let status = hungry(
        &group,
        "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}",
    );
    assert!(!status.success(), "it held 200 MB");
    assert_eq!(group.ran_out(), Some(OutOfMemory::Elsewhere));
}

#[test]
fn dropped_group_kills_processes_and_removes_folders() {
    let Some(groups) = groups() else { return };
    let group = groups.take(64 << 20).expect("a group");
    let folders = group.hierarchy.folders(group.number);
    let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep");
    group.admit(Pid::from_child(&child)).expect("admitted");
    assert_eq!(group.members(), [Pid::from_child(&child)]);
    let reaping = std::thread::spawn(move || child.wait().expect("reaped"));
    drop(group);
    assert!(!reaping.join().expect("it ended").success());
    drop(groups);
    assert!(folders.iter().all(|folder| !folder.exists()), "{folders:?}");
}

#[test]
fn machine_without_groups_is_reported() {
    let root = tempfile::tempdir().expect("a directory");
    let why = ControlGroups::create_in(root.path()).expect_err("there are none");
    assert!(why.contains(root.path().to_str().expect("text")), "{why}");
}

#[test]
fn group_of_process_is_found_in_either_version() {
    let text = "5:cpu,memory:/jobs/one\n2:pids:/x\n0::/user\n";
    assert_eq!(group_of(text, "memory"), Some("jobs/one"));
    assert_eq!(
        (group_of(text, "pids"), group_of(text, "")),
        (Some("x"), Some("user"))
    );
    assert_eq!(group_of(text, "io"), None);
}

#[test]
fn memory_of_groups_is_their_sum() {
    let folder = tempfile::tempdir().expect("a folder");
    let (groups, group) = ControlGroups::without_limits(folder.path());
    assert_eq!(groups.memory_bytes(), None, "the kernel does not count it");
    fs::write(folder.path().join("memory.current"), "16777216\n").expect("written");
    assert_eq!(groups.memory_bytes(), Some(16 << 20));
    drop(group);
    if let Some(groups) = self::groups() {
        assert!(
            groups.memory_bytes().is_some(),
            "a kernel with groups counts their memory"
        );
    }
}
