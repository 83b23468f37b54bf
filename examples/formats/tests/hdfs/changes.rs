//! Lost requests and changed input files while a job reads: the output is the same, or the job fails with the
//! reason.

use std::process::Stdio;

use napreduce_tests::{Folder, counter, parts};

use super::inputs::text;
use super::proxy::{Kind, Proxy, Trick};
use super::server::Files;

#[test]
fn lost_requests_do_not_change_output() {
    let Some(files) = Files::create("faults") else {
        return;
    };
    let folder = Folder::new();
    files.put("a.txt", text(20_000));
    let run = |address: &str, output: &str| {
        let mut command = files.program(env!("CARGO_BIN_EXE_stored-words"), address);
        command.args([
            &files.uri("a.txt"),
            "--output",
            output,
            "--reduces",
            "2",
            "--split-size",
            "200KiB",
        ]);
        napreduce_tests::run(command.current_dir(folder.root())).succeeded();
    };
    run(&files.address, "expected");
    let tricks = [[Trick::Refuse; 3], [Trick::Lose; 3]].concat();
    let proxy = Proxy::on(
        Kind::READ,
        &files.address,
        &[&[Trick::Pass][..], &tricks].concat(),
    );
    run(&proxy.address, "found");
    proxy.check_fired();
    let expected = folder.path("expected");
    let found = folder.path("found");
    assert!(parts(&expected) == parts(&found));
    assert_eq!(
        counter(&expected, "STORAGE_READ_BYTES"),
        counter(&found, "STORAGE_READ_BYTES")
    );
}

/// Runs the job until its map is about to read, changes the file, and returns the job's error.
fn said_after(name: &'static str, change: impl FnOnce(&Files)) -> Option<String> {
    let files = Files::create(name)?;
    let folder = Folder::new();
    files.put("a.txt", text(1000));
    // The first bytes are read when the splits are computed.
    let proxy = Proxy::on(Kind::READ, &files.address, &[Trick::Pass, Trick::Hold]);
    let mut command = files.program(env!("CARGO_BIN_EXE_stored-words"), &proxy.address);
    command
        .args([&files.uri("a.txt"), "--output", "out"])
        .current_dir(folder.root());
    let job = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    proxy.wait_until_held();
    change(&files);
    proxy.release();
    let ended = job.wait_with_output().expect("the program");
    assert_eq!(ended.status.code(), Some(1));
    assert!(!folder.has("out/_SUCCESS"));
    Some(String::from_utf8_lossy(&ended.stderr).into_owned())
}

#[test]
fn changed_input_file_fails_job() {
    let says =
        "a.txt was replaced or removed after the job began: attempts would read different bytes";
    // The same bytes with another modification time.
    let replaced = said_after("replaced", |files| files.put("a.txt", text(1000)));
    let Some(replaced) = replaced else { return };
    assert!(
        replaced.contains(&format!("hdfs://books/replaced/{says}")),
        "{replaced}"
    );
    let removed = said_after("removed", |files| files.remove("a.txt")).expect("there is a server");
    assert!(
        removed.contains(&format!("hdfs://books/removed/{says}")),
        "{removed}"
    );
}
