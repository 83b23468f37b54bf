//! Errors for unreadable input name the object and the remedy, and contain no credentials.

use napreduce_tests::{Ended, Folder, run};

use super::server::{Bucket, Server, on_each_server};

fn words(bucket: &Bucket, input: &str, environment: &[(&str, &str)], without: &[&str]) -> Ended {
    let folder = Folder::new();
    let output = folder.path("out");
    let mut command = bucket.program(env!("CARGO_BIN_EXE_stored-words"), &bucket.address);
    command
        .args([input, "--output", output.to_str().expect("text")])
        .envs(environment.iter().copied());
    for name in without {
        command.env_remove(name);
    }
    let ended = run(&mut command);
    for (name, value) in bucket.server.environment("") {
        let is_secret = name.contains("KEY") || name.contains("TOKEN");
        let is_said = is_secret && ended.stderr.contains(&value);
        assert!(!is_said, "{name} is said: {}", ended.stderr);
    }
    assert!(!output.exists(), "nothing was begun");
    ended
}

fn missing_objects_are_named(server: Server) {
    let Some(bucket) = Bucket::create(server, "missing") else {
        return;
    };
    bucket.put("there.txt", "x\n");
    let fails = |input: &str, says: &[&str]| drop(words(&bucket, input, &[], &[]).failed(2, says));
    for (key, says) in [
        ("no/such.txt", "does not exist"),
        ("no/*.txt", "matches no file"),
        ("[", "is not a valid pattern"),
    ] {
        let input = bucket.uri(key);
        fails(&input, &[&format!("input {input} {says}")]);
    }
    let elsewhere = format!("{}/there.txt", server.root_of("no-such-bucket"));
    fails(
        &elsewhere,
        &[" no-such-bucket", "does not exist; check its name"],
    );
    fails("s3://", &["invalid object name s3://: it has no bucket"]);
    fails(&bucket.uri("a//b"), &["keys with //"]);
    bucket.put("odd//key.txt", "x\n");
    fails(
        &bucket.uri(""),
        &[&format!("{}: ", bucket.uri("")), "odd//key.txt"],
    );
}

fn denied_access_is_reported(server: Server) {
    let Some(bucket) = Bucket::create(server, "denied") else {
        return;
    };
    bucket.put("there.txt", "x\n");
    let input = bucket.uri("there.txt");
    let dialect = server.dialect();
    let denied = words(&bucket, &input, &[(dialect.unsigned, "true")], &[]);
    denied.failed(
        2,
        &[
            &format!("access to {input} is denied (403"),
            "check the credentials",
        ],
    );
    // No server listens at this address, as on a host without a role.
    let none = words(&bucket, &input, dialect.elsewhere, dialect.credentials);
    none.failed(2, &[&format!("no credentials for {input}"), dialect.remedy]);
}

fn misnamed_object_is_rejected_like_file(server: Server) {
    let Some(bucket) = Bucket::create(server, "misnamed") else {
        return;
    };
    bucket.put("data.txt", [0x1f, 0x8b, 8, 0, 0, 0]);
    let input = bucket.uri("data.txt");
    let says = format!("{input} contains gzip data, but its name does not end in .gz");
    words(&bucket, &input, &[], &[]).failed(2, &[&says]);
}

on_each_server! {
    missing_objects_are_named,
    denied_access_is_reported,
    misnamed_object_is_rejected_like_file,
}
