//! Truncated answers, busy servers and replaced objects: the output is the same, or the job fails with the
//! reason.

use std::process::Stdio;

use napreduce_tests::{Folder, counter, parts};

use super::jobs::text;
use super::proxy::{Proxy, Trick};
use super::server::{Bucket, Server, on_each_server};

fn server_faults_do_not_change_output(server: Server) {
    let Some(bucket) = Bucket::create(server, "faults") else {
        return;
    };
    let folder = Folder::new();
    bucket.put("a.txt", text(20_000));
    let run = |address: &str, output: &str| {
        let mut command = bucket.program(env!("CARGO_BIN_EXE_stored-words"), address);
        command.args([
            &bucket.uri("a.txt"),
            "--output",
            output,
            "--reduces",
            "2",
            "--split-size",
            "200KiB",
        ]);
        napreduce_tests::run(command.current_dir(folder.root())).succeeded();
    };
    run(&bucket.address, "expected");
    let tricks = [
        Trick::Status(503),
        Trick::Status(429),
        Trick::Cut(0),
        Trick::Cut(1000),
        Trick::Cut(70_000),
        Trick::Status(500),
    ];
    let proxy = Proxy::before(&bucket.address, &[&[Trick::Pass][..], &tricks].concat());
    run(&proxy.address, "found");
    proxy.check_fired();
    let expected = folder.path("expected");
    let found = folder.path("found");
    assert!(parts(&expected) == parts(&found));
    assert_eq!(counter(&expected, "STORAGE_READ_RETRIES"), 0);
    assert_eq!(counter(&found, "STORAGE_READ_RETRIES"), tricks.len() as u64);
    // Bytes received before a response broke off are not requested again.
    assert_eq!(
        counter(&expected, "STORAGE_READ_BYTES"),
        counter(&found, "STORAGE_READ_BYTES")
    );
}

/// Runs the job until its map is about to read, changes the object, and returns the job's error.
fn said_after(server: Server, name: &'static str, change: impl FnOnce(&Bucket)) -> Option<String> {
    let bucket = Bucket::create(server, name)?;
    let folder = Folder::new();
    bucket.put("a.txt", text(1000));
    // The first bytes are read when the splits are computed.
    let proxy = Proxy::before(&bucket.address, &[Trick::Pass, Trick::Hold]);
    let mut command = bucket.program(env!("CARGO_BIN_EXE_stored-words"), &proxy.address);
    command
        .args([&bucket.uri("a.txt"), "--output", "out"])
        .current_dir(folder.root());
    let job = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    proxy.wait_until_held();
    change(&bucket);
    proxy.release();
    let ended = job.wait_with_output().expect("the program");
    assert_eq!(ended.status.code(), Some(1));
    assert!(!folder.has("out/_SUCCESS"));
    Some(String::from_utf8_lossy(&ended.stderr).into_owned())
}

fn changed_object_fails_job(server: Server) {
    let replaced = said_after(server, "replaced", |bucket| bucket.put("a.txt", text(1001)));
    let Some(replaced) = replaced else { return };
    let says =
        "a.txt was replaced or removed after the job began: attempts would read different bytes";
    assert!(
        replaced.contains(&format!("{}/{says}", server.root_of("replaced"))),
        "{replaced}"
    );
    let removed =
        said_after(server, "removed", |bucket| bucket.remove("a.txt")).expect("there is a server");
    assert!(
        removed.contains(&format!("{}/{says}", server.root_of("removed"))),
        "{removed}"
    );
}

on_each_server! {
    server_faults_do_not_change_output,
    changed_object_fails_job,
}
