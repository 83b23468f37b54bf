//! Cluster tasks that read objects are suspended and checkpointed inside an object.

use napreduce_tests::{Folder, OwnCluster, counter, joined, run};

use super::jobs::text;
use super::proxy::{Proxy, Trick};
use super::server::{Bucket, Server, on_each_server};

fn cluster_tasks_restore_inside_object(server: Server) {
    let Some(bucket) = Bucket::create(server, "cluster") else {
        return;
    };
    let folder = Folder::new();
    bucket.put("a.txt", text(100_000));
    folder.write("a.txt", text(100_000));
    let local = ["a.txt", "--output", "expected", "--reduces", "1"];
    let mut command = bucket.program(env!("CARGO_BIN_EXE_stored-words"), &bucket.address);
    run(command.current_dir(folder.root()).args(local)).succeeded();
    // A map of 16 MiB reads half a megabyte per request. The third request is held, after records of the
    // first were processed.
    let held = [Trick::Pass, Trick::Pass, Trick::Pass, Trick::Hold];
    let proxy = Proxy::before(&bucket.address, &held);
    let variables = server.environment(&proxy.address);
    let passed = format!(
        "[worker]\npass-environment = [\"{}\"]\n",
        server.dialect().passed
    );
    let cluster = OwnCluster::start_with(&folder, 2, "fifo", &passed, &variables);
    let mut submit = bucket.program(env!("CARGO_BIN_EXE_stored-words"), &bucket.address);
    submit
        .current_dir(folder.root())
        .arg("--cluster")
        .arg(cluster.directory());
    let job = [
        &bucket.uri("a.txt"),
        "--output",
        "out",
        "--reduces",
        "1",
        "--task-memory",
        "16MiB",
        "--detach",
    ];
    let job = run(submit.args(job)).succeeded().stdout.trim().to_owned();
    proxy.wait_until_held();
    let map = format!("{job}_m_0000");
    run(cluster.nap().args(["task", "suspend", &map])).succeeded();
    run(cluster.nap().args(["task", "resume", &map])).succeeded();
    run(cluster
        .nap()
        .args(["task", "checkpoint", &map, "--no-wait"]))
    .succeeded();
    proxy.release();
    cluster.wait(&[&job]).succeeded();
    assert!(joined(&folder.path("out")) == joined(&folder.path("expected")));
    let out = folder.path("out");
    assert_eq!(counter(&out, "MAP_INPUT_RECORDS"), 100_000);
    assert_eq!(
        (counter(&out, "SUSPENDS"), counter(&out, "CHECKPOINTS")),
        (1, 1)
    );
    assert!(counter(&out, "STORAGE_READ_REQUESTS") > 3);
    keeps_no_credentials(cluster.directory(), server.dialect().secret);
}

/// Checks that the credentials are not in the journal, the logs or the history.
fn keeps_no_credentials(directory: &std::path::Path, secret: &str) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            keeps_no_credentials(&path, secret);
        } else if let Ok(bytes) = std::fs::read(&path) {
            let found = bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds a credential", path.display());
        }
    }
}

on_each_server! {
    cluster_tasks_restore_inside_object,
}
