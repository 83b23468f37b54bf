//! Programs that run embedded jobs: output, refusals, overwriting, lost requests, and remains of killed
//! programs.

use std::process::{Child, Stdio};

use napreduce_tests::{Process, run, wait_until};

use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;

#[test]
fn hdfs_output_equals_local_output() {
    let Some(scene) = Scene::new("written") else {
        return;
    };
    scene
        .words(&scene.files.address, &format!("{}/", scene.out()), &[])
        .succeeded();
    scene.assert_written();
    assert!(
        scene.counter("STORAGE_WRITE_REQUESTS") >= 6,
        "each part is begun and sent"
    );
    assert_eq!(
        scene.counter("STORAGE_WRITE_BYTES"),
        scene.counter("BYTES_WRITTEN")
    );
    assert_eq!(scene.counter("STORAGE_WRITE_RETRIES"), 0);
    let digests = |report: serde_json::Value| {
        let parts = report["parts"].as_array().expect("parts").clone();
        parts
            .into_iter()
            .map(|part| part["digest"].clone())
            .collect::<Vec<_>>()
    };
    let local = napreduce_tests::report(&scene.folder.path("expected"));
    assert_eq!(digests(scene.report()), digests(local));
    // The output can be the input of another job.
    let again = ["--output", "again", "--reduces", "1", "--quiet"];
    let mut command = scene.program(env!("CARGO_BIN_EXE_stored-words"), &scene.files.address);
    run(command.arg(scene.out()).args(again)).succeeded();
}

#[test]
fn existing_output_is_replaced_only_with_overwrite() {
    let Some(scene) = Scene::new("replaced-output") else {
        return;
    };
    let address = scene.files.address.clone();
    let out = scene.out();
    let mut more = scene.program(env!("CARGO_BIN_EXE_stored-words"), &address);
    run(more.args(["in.txt", "--reduces", "5", "--quiet", "--output", &out])).succeeded();
    scene.files.put("out/notes.txt", "mine");
    scene.files.put("outer/part-r-00000", "mine");
    let refused = scene.words(&address, &out, &[]);
    refused.failed(
        2,
        &["output directory hdfs://books/replaced-output/out/ exists; pass --overwrite"],
    );
    assert_eq!(scene.stored_parts().len(), 6);
    scene.words(&address, &out, &["--overwrite"]).succeeded();
    assert_eq!(scene.files.get("outer/part-r-00000"), b"mine");
    assert_eq!(scene.files.get("out/notes.txt"), b"mine");
    let names = [
        "",
        "_SUCCESS",
        "notes.txt",
        "part-r-00000",
        "part-r-00001",
        "part-r-00002",
    ];
    let expected: Vec<String> = names.iter().map(|name| format!("out/{name}")).collect();
    assert_eq!(scene.files.keys()[..6], expected);
}

#[test]
fn map_only_job_writes_named_outputs() {
    let Some(scene) = Scene::new("numbers") else {
        return;
    };
    // More than one piece and more than one block.
    let lines: String = (1_000_000_000_u64..1_000_900_000)
        .map(|number| format!("{number}\n"))
        .collect();
    scene.folder.write("lines.txt", format!("{lines}none\n"));
    let run = |output: &str| {
        let mut command = scene.program(env!("CARGO_BIN_EXE_stored-numbers"), &scene.files.address);
        run(command.args([
            "lines.txt",
            "--output",
            output,
            "--quiet",
            "--split-size",
            "1GiB",
        ]))
        .succeeded();
    };
    run("numbers");
    run(&scene.out());
    let names: Vec<String> = scene
        .stored_parts()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["errors-m-00000", "part-m-00000"]);
    for name in names {
        let local = std::fs::read(scene.folder.path("numbers").join(&name)).expect("a file");
        assert!(scene.files.get(&format!("out/{name}")) == local, "{name}");
    }
    assert!(
        scene.report()["parts"][0]["bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 8 << 20)
    );
    scene.assert_no_remains();
}

#[test]
fn invalid_output_locations_are_rejected() {
    let Some(scene) = Scene::new("places-refused") else {
        return;
    };
    let address = scene.files.address.clone();
    let refused =
        |output: &str, says: &[&str]| drop(scene.words(&address, output, &[]).failed(2, says));
    refused("hdfs://books", &["add a path inside the bucket"]);
    refused("hdfs://books/a//b", &["//"]);
    refused(
        "hdfs://nobody/out",
        &["nobody is neither HOST:PORT nor a nameservice"],
    );
    scene.files.put("out/in.txt", "to be\n");
    let mut command = scene.program(env!("CARGO_BIN_EXE_stored-words"), &address);
    let arguments = [
        &scene.files.uri("out/in.txt"),
        "--output",
        &scene.out(),
        "--overwrite",
    ];
    run(command.args(arguments)).failed(2, &["the job's input", "/places-refused/out/in.txt;"]);
    assert_eq!(scene.files.keys(), ["out/", "out/in.txt"]);
    scene.files.put("closed/in.txt", "to be\n");
    scene.files.close("closed");
    let mut command = scene.command(&address, &scene.files.uri("closed/out"));
    run(command.env("HADOOP_USER_NAME", "stranger"))
        .failed(2, &["is denied (403 AccessControlException)"]);
}

/// Runs the job until one of its tasks sends a part, and holds that request.
fn held_while_writing(scene: &Scene) -> (Proxy, Child) {
    let proxy = Proxy::on(Kind::SEND, &scene.files.address, &[Trick::Hold]);
    let mut command = scene.command(&proxy.address, &scene.out());
    let job = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    proxy.wait_until_held();
    (proxy, job)
}

#[test]
fn concurrent_programs_one_claims_output() {
    let Some(scene) = Scene::new("both") else {
        return;
    };
    let (proxy, mut first) = held_while_writing(&scene);
    for more in [&[][..], &["--overwrite"]] {
        let second = scene.words(&scene.files.address, &scene.out(), more);
        second.failed(
            2,
            &["hdfs://books/both/out/ is being written by another run"],
        );
    }
    proxy.release();
    assert!(first.wait().expect("it ends").success());
    scene.assert_written();
}

#[test]
fn next_run_removes_leftovers_of_killed_program() {
    let Some(scene) = Scene::new("killed") else {
        return;
    };
    let (proxy, mut job) = held_while_writing(&scene);
    let tasks = Process::tasks_of(job.id());
    job.kill().expect("killed");
    job.wait().expect("it is gone");
    wait_until("the end of its tasks", || {
        tasks.iter().all(Process::is_gone)
    });
    proxy.drop_held();
    let is_upload = |key: &String| key.starts_with("out/_temporary/napreduce/uploads/part-");
    assert!(scene.files.keys().iter().any(is_upload), "they are left");
    scene
        .words(&scene.files.address, &scene.out(), &[])
        .succeeded();
    scene.assert_written();
}

#[test]
fn attempt_killed_while_writing_is_retried() {
    let Some(scene) = Scene::new("attempts") else {
        return;
    };
    let (proxy, mut job) = held_while_writing(&scene);
    let tasks = Process::tasks_of(job.id());
    assert!(!tasks.is_empty());
    for task in &tasks {
        task.signal(rustix::process::Signal::KILL);
    }
    wait_until("the end of the attempts", || {
        tasks.iter().all(Process::is_gone)
    });
    proxy.drop_held();
    assert!(job.wait().expect("it ends").success());
    scene.assert_written();
}

#[test]
fn interrupted_program_leaves_no_file() {
    let Some(scene) = Scene::new("interrupted") else {
        return;
    };
    let (proxy, mut job) = held_while_writing(&scene);
    assert!(
        Process::of(job.id())
            .expect("it runs")
            .signal(rustix::process::Signal::INT)
    );
    assert_eq!(job.wait().expect("it ends").code(), Some(130));
    proxy.drop_held();
    assert_eq!(scene.files.keys(), ["out/"], "the directory stays");
}

fn check_lost(name: &'static str, kind: Kind, tricks: &[Trick]) {
    let Some(scene) = Scene::new(name) else {
        return;
    };
    let proxy = Proxy::on(kind, &scene.files.address, tricks);
    scene.words(&proxy.address, &scene.out(), &[]).succeeded();
    proxy.check_fired();
    scene.assert_written();
}

#[test]
fn rename_with_lost_answer_is_verified() {
    check_lost(
        "unheard",
        Kind::COMPLETE,
        &[Trick::Lose, Trick::Refuse, Trick::Lose],
    );
}

#[test]
fn claim_with_lost_answer_is_recognized() {
    check_lost(
        "unheard-claim",
        Kind::CLAIM,
        &[Trick::Lose, Trick::Refuse, Trick::Lose],
    );
}

#[test]
fn manifest_with_lost_answer_is_rewritten() {
    check_lost(
        "unheard-success",
        Kind::SUCCESS,
        &[Trick::Refuse, Trick::Lose],
    );
}

#[test]
fn attempt_with_failed_write_is_retried() {
    check_lost("broken-off", Kind::SEND, &[Trick::Refuse, Trick::Lose]);
}
