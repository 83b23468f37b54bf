//! Programs that run their jobs themselves: what they write, refuse, replace, and leave when they are killed.
//!
//! Owns whole runs. Does not own servers that fail (`faults`).

use std::process::{Child, Stdio};

use napreduce_tests::{Process, run, wait_until};

use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;

#[test]
fn words_in_a_store_are_those_of_a_directory() {
    let Some(scene) = Scene::new("written") else { return };
    scene.words(&scene.bucket.address, &format!("{}/", scene.out()), &[]).succeeded();
    scene.assert_written();
    assert!(scene.counter("STORAGE_WRITE_REQUESTS") >= 6, "each part is begun and sent");
    assert_eq!(scene.counter("STORAGE_WRITE_BYTES"), scene.counter("BYTES_WRITTEN"));
    assert_eq!(scene.counter("STORAGE_WRITE_RETRIES"), 0);
    let digests = |report: serde_json::Value| {
        let parts = report["parts"].as_array().expect("parts").clone();
        parts.into_iter().map(|part| part["digest"].clone()).collect::<Vec<_>>()
    };
    let local = napreduce_tests::report(&scene.folder.path("expected"));
    assert_eq!(digests(scene.report()), digests(local));
    // It is an input as any other.
    let again = ["--output", "again", "--reduces", "1", "--quiet"];
    let mut command = scene.program(env!("CARGO_BIN_EXE_stored-words"), &scene.bucket.address);
    run(command.arg(scene.out()).args(again)).succeeded();
}

#[test]
fn an_output_that_exists_is_refused_and_replaced_when_that_is_said() {
    let Some(scene) = Scene::new("replaced") else { return };
    let (address, out) = (scene.bucket.address.clone(), scene.out());
    let mut more = scene.program(env!("CARGO_BIN_EXE_stored-words"), &address);
    run(more.args(["in.txt", "--reduces", "5", "--quiet", "--output", &out])).succeeded();
    scene.bucket.put("out/notes.txt", "mine");
    scene.bucket.put("outer/part-r-00000", "mine");
    scene.bucket.begin_upload("out/photo.raw");
    let refused = scene.words(&address, &out, &[]);
    refused.failed(2, &["output directory s3://replaced/out/ exists; pass --overwrite or choose another"]);
    assert_eq!(scene.stored_parts().len(), 6);
    scene.words(&address, &out, &["--overwrite"]).succeeded();
    assert_eq!(scene.bucket.uploads(), ["out/photo.raw"], "of another program");
    assert_eq!(scene.bucket.get("outer/part-r-00000"), b"mine");
    assert_eq!(scene.bucket.get("out/notes.txt"), b"mine");
    let keys: Vec<String> = scene.bucket.keys();
    let expected = ["_SUCCESS", "notes.txt", "part-r-00000", "part-r-00001", "part-r-00002"];
    let expected: Vec<String> = expected.iter().map(|name| format!("out/{name}")).collect();
    assert_eq!(keys[..5], expected);
}

#[test]
fn a_job_without_reduces_writes_outputs_with_names_and_parts_of_any_size() {
    let Some(scene) = Scene::new("numbers") else { return };
    // More than one request takes.
    let lines: String = (1_000_000_000_u64..1_000_900_000).map(|number| format!("{number}\n")).collect();
    scene.folder.write("lines.txt", format!("{lines}none\n"));
    let run = |output: &str| {
        let mut command = scene.program(env!("CARGO_BIN_EXE_stored-numbers"), &scene.bucket.address);
        run(command.args(["lines.txt", "--output", output, "--quiet", "--split-size", "1GiB"])).succeeded();
    };
    run("numbers");
    run(&scene.out());
    let names: Vec<String> = scene.stored_parts().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["errors-m-00000", "part-m-00000"]);
    for name in names {
        let local = std::fs::read(scene.folder.path("numbers").join(&name)).expect("a file");
        assert!(scene.bucket.get(&format!("out/{name}")) == local, "{name}");
    }
    let report = scene.report();
    let part = &report["parts"][0];
    assert!(part["bytes"].as_u64().is_some_and(|bytes| bytes > 8 << 20));
    assert!(part["etag"].as_str().is_some_and(|etag| etag.ends_with("-2")), "{part}");
    scene.assert_no_remains();
}

#[test]
fn places_where_no_output_can_be_are_refused() {
    let Some(scene) = Scene::new("places-refused") else { return };
    let address = scene.bucket.address.clone();
    let refused = |output: &str, says: &[&str]| drop(scene.words(&address, output, &[]).failed(2, says));
    refused("s3://places-refused", &["a whole bucket; name a place in it"]);
    refused("s3://places-refused/a//b", &["//"]);
    refused("s3://no-such-bucket/out", &["there is no bucket no-such-bucket"]);
    refused("hdfs://host/out", &["hdfs:// is not supported"]);
    scene.bucket.put("out/in.txt", "to be\n");
    let mut command = scene.program(env!("CARGO_BIN_EXE_stored-words"), &address);
    let arguments = [&scene.bucket.uri("out/in.txt"), "--output", &scene.out(), "--overwrite"];
    run(command.args(arguments)).failed(2, &["the job reads s3://places-refused/out/in.txt, which is in it"]);
    assert_eq!(scene.bucket.keys(), ["out/in.txt"]);
}

/// Runs the job until one of its tasks sends a part, and waits there.
pub fn held_while_writing(scene: &Scene) -> (Proxy, Child) {
    let proxy = Proxy::on(Kind::SendPart, &scene.bucket.address, &[Trick::Hold]);
    let mut command = scene.command(&proxy.address, &scene.out());
    let job = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program");
    proxy.wait_until_held();
    (proxy, job)
}

#[test]
fn of_two_programs_at_once_one_writes() {
    let Some(scene) = Scene::new("both") else { return };
    let (proxy, mut first) = held_while_writing(&scene);
    for more in [&[][..], &["--overwrite"]] {
        let second = scene.words(&scene.bucket.address, &scene.out(), more);
        second.failed(2, &["s3://both/out/ is being written by another run"]);
    }
    proxy.release();
    assert!(first.wait().expect("it ends").success());
    scene.assert_written();
}

#[test]
fn the_next_run_drops_what_a_killed_program_has_begun() {
    let Some(scene) = Scene::new("killed") else { return };
    let (proxy, mut job) = held_while_writing(&scene);
    let tasks = Process::tasks_of(job.id());
    job.kill().expect("killed");
    job.wait().expect("it is gone");
    wait_until("the end of its tasks", || tasks.iter().all(Process::is_gone));
    proxy.drop_held();
    assert!(!scene.bucket.uploads().is_empty(), "they are left");
    assert!(scene.stored_parts().is_empty(), "nothing is seen of it");
    scene.words(&scene.bucket.address, &scene.out(), &[]).succeeded();
    scene.assert_written();
}

#[test]
fn an_attempt_that_is_killed_while_it_writes_is_tried_again() {
    let Some(scene) = Scene::new("attempts") else { return };
    let (proxy, mut job) = held_while_writing(&scene);
    let tasks = Process::tasks_of(job.id());
    assert!(!tasks.is_empty());
    for task in &tasks {
        task.signal(rustix::process::Signal::KILL);
    }
    wait_until("the end of the attempts", || tasks.iter().all(Process::is_gone));
    proxy.drop_held();
    assert!(job.wait().expect("it ends").success());
    scene.assert_written();
}

#[test]
fn a_program_that_is_interrupted_leaves_nothing() {
    let Some(scene) = Scene::new("interrupted") else { return };
    let (proxy, mut job) = held_while_writing(&scene);
    assert!(Process::of(job.id()).expect("it runs").signal(rustix::process::Signal::INT));
    assert_eq!(job.wait().expect("it ends").code(), Some(130));
    proxy.drop_held();
    scene.assert_no_remains();
    assert_eq!(scene.bucket.keys(), Vec::<String>::new());
}
