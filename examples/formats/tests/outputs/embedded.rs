//! Programs that run embedded jobs: output, refusals, overwriting, and remains of killed programs.

use std::process::{Child, Stdio};

use napreduce_tests::{Process, run, wait_until};

use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;
use super::server::{Server, on_each_server};

fn store_output_equals_local_output(server: Server) {
    let Some(scene) = Scene::new(server, "written") else {
        return;
    };
    scene
        .words(&scene.bucket.address, &format!("{}/", scene.out()), &[])
        .succeeded();
    scene.assert_written();
    let requests = match server {
        Server::Moto | Server::Google => 6,
        Server::Azurite => 3,
    };
    assert!(
        scene.counter("STORAGE_WRITE_REQUESTS") >= requests,
        "each part is sent, and begun where that is asked for"
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
    let mut command = scene.program(env!("CARGO_BIN_EXE_stored-words"), &scene.bucket.address);
    run(command.arg(scene.out()).args(again)).succeeded();
}

fn existing_output_is_replaced_only_with_overwrite(server: Server) {
    let Some(scene) = Scene::new(server, "replaced") else {
        return;
    };
    let address = scene.bucket.address.clone();
    let out = scene.out();
    let mut more = scene.program(env!("CARGO_BIN_EXE_stored-words"), &address);
    run(more.args(["in.txt", "--reduces", "5", "--quiet", "--output", &out])).succeeded();
    scene.bucket.put("out/notes.txt", "mine");
    scene.bucket.put("outer/part-r-00000", "mine");
    scene.bucket.begin_upload("out/photo.raw");
    let refused = scene.words(&address, &out, &[]);
    refused.failed(
        2,
        &[&format!(
            "output directory {out}/ exists; pass --overwrite or choose another"
        )],
    );
    assert_eq!(scene.stored_parts().len(), 6);
    scene.words(&address, &out, &["--overwrite"]).succeeded();
    assert_eq!(
        scene.bucket.uploads(),
        ["out/photo.raw"],
        "of another program"
    );
    assert_eq!(scene.bucket.get("outer/part-r-00000"), b"mine");
    assert_eq!(scene.bucket.get("out/notes.txt"), b"mine");
    let keys: Vec<String> = scene.bucket.keys();
    let expected = [
        "_SUCCESS",
        "notes.txt",
        "part-r-00000",
        "part-r-00001",
        "part-r-00002",
    ];
    let expected: Vec<String> = expected.iter().map(|name| format!("out/{name}")).collect();
    assert_eq!(keys[..5], expected);
}

fn map_only_job_writes_named_outputs(server: Server) {
    let Some(scene) = Scene::new(server, "numbers") else {
        return;
    };
    // More than fits in one request.
    let lines: String = (1_000_000_000_u64..1_000_900_000)
        .map(|number| format!("{number}\n"))
        .collect();
    scene.folder.write("lines.txt", format!("{lines}none\n"));
    let run = |output: &str| {
        let mut command =
            scene.program(env!("CARGO_BIN_EXE_stored-numbers"), &scene.bucket.address);
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
        assert!(scene.bucket.get(&format!("out/{name}")) == local, "{name}");
    }
    let report = scene.report();
    let part = &report["parts"][0];
    assert!(part["bytes"].as_u64().is_some_and(|bytes| bytes > 8 << 20));
    let is_of_two = |etag: &str| server != Server::Moto || etag.ends_with("-2");
    assert!(part["etag"].as_str().is_some_and(is_of_two), "{part}");
    scene.assert_no_remains();
}

fn invalid_output_locations_are_rejected(server: Server) {
    let Some(scene) = Scene::new(server, "places-refused") else {
        return;
    };
    let address = scene.bucket.address.clone();
    let refused =
        |output: &str, says: &[&str]| drop(scene.words(&address, output, &[]).failed(2, says));
    refused(
        &scene.bucket.root(),
        &["a whole bucket; add a path inside the bucket"],
    );
    refused(&scene.bucket.uri("a//b"), &["//"]);
    refused(
        &format!("{}/out", server.root_of("no-such-bucket")),
        &[" no-such-bucket", "does not exist"],
    );
    refused("ftp://host/out", &["ftp:// is not supported"]);
    scene.bucket.put("out/in.txt", "to be\n");
    let mut command = scene.program(env!("CARGO_BIN_EXE_stored-words"), &address);
    let input = scene.bucket.uri("out/in.txt");
    let arguments = [&input, "--output", &scene.out(), "--overwrite"];
    run(command.args(arguments))
        .failed(2, &[&format!("it is or contains the job's input {input};")]);
    assert_eq!(scene.bucket.keys(), ["out/in.txt"]);
}

/// Runs the job until one of its tasks sends a part, and holds that request.
fn held_while_writing(scene: &Scene) -> (Proxy, Child) {
    held_after(scene, &[])
}

/// The same after this many parts were sent.
fn held_after(scene: &Scene, sent: &[Trick]) -> (Proxy, Child) {
    let tricks = [sent, &[Trick::Hold]].concat();
    let proxy = Proxy::on(Kind::SendPart, &scene.bucket.address, &tricks);
    let mut command = scene.command(&proxy.address, &scene.out());
    let job = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    proxy.wait_until_held();
    (proxy, job)
}

fn concurrent_programs_one_claims_output(server: Server) {
    let Some(scene) = Scene::new(server, "both") else {
        return;
    };
    let (proxy, mut first) = held_while_writing(&scene);
    for more in [&[][..], &["--overwrite"]] {
        let second = scene.words(&scene.bucket.address, &scene.out(), more);
        second.failed(
            2,
            &[&format!("{}/ is being written by another run", scene.out())],
        );
    }
    proxy.release();
    assert!(first.wait().expect("it ends").success());
    scene.assert_written();
}

fn next_run_removes_leftovers_of_killed_program(server: Server) {
    let Some(scene) = Scene::new(server, "killed") else {
        return;
    };
    let (proxy, mut job) = held_after(&scene, &[Trick::Pass]);
    let tasks = Process::tasks_of(job.id());
    job.kill().expect("killed");
    job.wait().expect("it is gone");
    wait_until("the end of its tasks", || {
        tasks.iter().all(Process::is_gone)
    });
    proxy.drop_held();
    assert!(!scene.bucket.uploads().is_empty(), "they are left");
    assert!(scene.stored_parts().is_empty(), "nothing is seen of it");
    scene
        .words(&scene.bucket.address, &scene.out(), &[])
        .succeeded();
    scene.assert_written();
}

/// Kills the program while a request of its commit is held; the request may still be carried out.
fn killed_in_commit(
    server: Server,
    name: &'static str,
    kind: Kind,
    passed: usize,
) -> Option<(Scene, Proxy)> {
    let scene = Scene::new(server, name)?;
    let tricks = [&vec![Trick::Pass; passed][..], &[Trick::Hold]].concat();
    let proxy = Proxy::on(kind, &scene.bucket.address, &tricks);
    let mut command = scene.command(&proxy.address, &scene.out());
    let mut job = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program");
    proxy.wait_until_held();
    job.kill().expect("killed");
    job.wait().expect("it is gone");
    Some((scene, proxy))
}

fn next_run_finishes_commit_of_killed_program(server: Server) {
    let steps = [
        ("none-of-it", Kind::Complete, 0),
        ("some-of-it", Kind::Complete, 2),
        ("all-but-success", Kind::Put("/_success"), 0),
        ("all-of-it", Kind::Remove("/claim.json"), 0),
    ];
    for (name, kind, passed) in steps {
        let Some((scene, proxy)) = killed_in_commit(server, name, kind, passed) else {
            return;
        };
        proxy.drop_held();
        let next = scene.words(&scene.bucket.address, &scene.out(), &[]);
        next.failed(2, &["exists; pass --overwrite"]);
        scene.assert_written();
    }
}

fn unrecorded_commit_is_repeated(server: Server) {
    let killed = killed_in_commit(server, "not-noted", Kind::Put("/intent.json"), 0);
    let Some((scene, proxy)) = killed else { return };
    proxy.drop_held();
    scene
        .words(&scene.bucket.address, &scene.out(), &[])
        .succeeded();
    scene.assert_written();
}

fn empty_parts_are_committed(server: Server) {
    let Some(scene) = Scene::new(server, "without-bytes") else {
        return;
    };
    scene.folder.write("one.txt", "word\n");
    let run = |output: &str| {
        let mut command = scene.program(env!("CARGO_BIN_EXE_stored-words"), &scene.bucket.address);
        run(command.args(["one.txt", "--reduces", "4", "--quiet", "--output", output])).succeeded();
    };
    run("of-one");
    run(&scene.out());
    scene.assert_written_from("of-one");
    assert_eq!(
        scene
            .stored_parts()
            .iter()
            .filter(|(_, bytes)| bytes.is_empty())
            .count(),
        3
    );
}

fn attempt_killed_while_writing_is_retried(server: Server) {
    let Some(scene) = Scene::new(server, "attempts") else {
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

fn interrupted_program_leaves_nothing(server: Server) {
    let Some(scene) = Scene::new(server, "interrupted") else {
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
    scene.assert_no_remains();
    assert_eq!(scene.bucket.keys(), Vec::<String>::new());
}

on_each_server! {
    store_output_equals_local_output,
    existing_output_is_replaced_only_with_overwrite,
    map_only_job_writes_named_outputs,
    invalid_output_locations_are_rejected,
    concurrent_programs_one_claims_output,
    next_run_removes_leftovers_of_killed_program,
    next_run_finishes_commit_of_killed_program,
    unrecorded_commit_is_repeated,
    empty_parts_are_committed,
    attempt_killed_while_writing_is_retried,
    interrupted_program_leaves_nothing,
}
