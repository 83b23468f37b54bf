//! What cannot be read is named, with what to do, and without credentials.
//!
//! Owns the words that people see. Does not own what is tried again (`faults`).

use napreduce_tests::{Ended, Folder, run};

use super::moto::{Bucket, SECRET};

fn words(bucket: &Bucket, input: &str, environment: &[(&str, &str)], without: &[&str]) -> Ended {
    let folder = Folder::new();
    let output = folder.path("out");
    let mut command = bucket.program(env!("CARGO_BIN_EXE_stored-words"), &bucket.address);
    command.args([input, "--output", output.to_str().expect("text")]).envs(environment.iter().copied());
    for name in without {
        command.env_remove(name);
    }
    let ended = run(&mut command);
    assert!(!ended.stderr.contains(SECRET) && !ended.stderr.contains("AKIAONLYFORTESTS"), "{}", ended.stderr);
    assert!(!output.exists(), "nothing was begun");
    ended
}

#[test]
fn what_is_not_there_is_named() {
    let Some(bucket) = Bucket::create("missing") else { return };
    bucket.put("there.txt", "x\n");
    let fails = |input: &str, says: &[&str]| drop(words(&bucket, input, &[], &[]).failed(2, says));
    fails("s3://missing/no/such.txt", &["input s3://missing/no/such.txt does not exist"]);
    fails("s3://missing/no/*.txt", &["input s3://missing/no/*.txt matches no file"]);
    fails("s3://missing/[", &["input s3://missing/[ is not a valid pattern"]);
    fails("s3://no-such-bucket/there.txt", &["there is no bucket no-such-bucket", "check its name"]);
    fails("s3://", &["s3:// is no name of an object: it names no bucket"]);
    fails("s3://missing/a//b", &["keys with //"]);
    bucket.put("odd//key.txt", "x\n");
    fails("s3://missing/", &["s3://missing/ cannot be used", "odd//key.txt"]);
}

#[test]
fn who_may_not_read_is_told_so() {
    let Some(bucket) = Bucket::create("denied") else { return };
    bucket.put("there.txt", "x\n");
    let input = bucket.uri("there.txt");
    let denied = words(&bucket, &input, &[("AWS_SKIP_SIGNATURE", "true")], &[]);
    denied.failed(2, &["access to s3://denied/there.txt is refused (403", "check the credentials"]);
    let keys = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
    // Nobody listens there, as nobody does where no role is given.
    let nobody = [("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")];
    let none = words(&bucket, &input, &nobody, &keys);
    none.failed(
        2,
        &["no credentials for s3://denied/there.txt", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"],
    );
}

#[test]
fn an_output_in_a_store_is_refused_before_anything_is_read() {
    let Some(bucket) = Bucket::create("outputs") else { return };
    bucket.put("there.txt", "x\n");
    let refused = bucket.words(&[&bucket.uri("there.txt"), "--output", &bucket.uri("out")]);
    refused.failed(
        2,
        &["output s3://outputs/out is in S3, where nothing is written yet", "give --output a directory"],
    );
}

#[test]
fn a_name_with_the_wrong_ending_is_refused_as_that_of_a_file_is() {
    let Some(bucket) = Bucket::create("misnamed") else { return };
    bucket.put("data.txt", [0x1f, 0x8b, 8, 0, 0, 0]);
    let says = ["s3://misnamed/data.txt holds gzip data, but its name does not end in .gz"];
    words(&bucket, &bucket.uri("data.txt"), &[], &[]).failed(2, &says);
}
