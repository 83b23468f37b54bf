//! Programs that violate the frame protocol: each fails its task with an error that names the violation.

use std::panic::{AssertUnwindSafe, catch_unwind};

use napreduce::streaming::frames::{FrameDecoder, FramesProgram, job};
use napreduce::testing::JobTest;
use proptest::prelude::*;

const HELLO: &str = r#"printf '\0\0\0\034H{"version":1,"input":"text"}'; "#;

/// Returns the error of a map task whose program continues with `rest` after a valid hello.
fn failure(rest: &str) -> String {
    failure_of_lines(rest, 6)
}

fn failure_of_lines(rest: &str, lines: usize) -> String {
    let program =
        FramesProgram::ask(&format!("{HELLO}{rest}"), "broken", []).expect("its hello is right");
    let test = JobTest::new(|| job(&program)).input("be\n".repeat(lines));
    let panicked = catch_unwind(AssertUnwindSafe(|| test.run())).expect_err("it fails");
    *panicked.downcast::<String>().expect("it says why")
}

#[test]
fn protocol_violation_is_reported_with_role_and_name() {
    for (rest, says) in [
        ("exec 1>&-; exit 3", "exited with status 3"),
        ("kill -9 $$", "was killed by signal 9 (SIGKILL)"),
        ("no-such-program-here", "status 127"),
        ("true", "the mapper `broken` ended before its frame F"),
        (
            "echo rubbish",
            r#"the mapper `broken` sent "rubbish\n" where a frame should begin"#,
        ),
        (
            r"printf '\377\377\377\377O'",
            "sent a frame O of 4294967295 bytes (limit 4194304); raise --task-memory",
        ),
        (
            r"printf '\0\0\0\7O'; cat > /dev/null",
            "the mapper `broken` ended in the middle of a frame",
        ),
        (
            r"printf '\0\0\0\4O\0\0\0\1'; cat",
            "sent a batch of 4 bytes whose header claims 8 bytes",
        ),
        (
            r"printf '\0\0\0\0d'; cat",
            "sent a frame d without a request",
        ),
        (
            r"printf '\0\0\0\0E'; cat",
            "sent a frame E that only nap may send",
        ),
        (
            r#"printf '\0\0\0\020X{"message":"oh"}'; cat > /dev/null"#,
            "the mapper `broken` failed: oh",
        ),
    ] {
        let said = failure(rest);
        assert!(said.contains(says), "{rest}: {said}");
    }
}

#[test]
fn key_without_group_length_is_rejected() {
    let hello =
        r#"printf '\0\0\0\071H{"version":1,"input":"text","reduce":true,"grouped":true}'; "#;
    for (key, length) in [(r"abc", 3), (r"\0\0\0\2a", 5)] {
        let pair = format!(
            r"printf '\0\0\0\{:03o}O\0\0\0\1\0\0\0\{length}\0\0\0\1{key}v'; cat > /dev/null",
            12 + length + 1
        );
        let program = FramesProgram::ask(&format!("{hello}{pair}"), "groups", [])
            .expect("its hello is right");
        let test = JobTest::new(|| job(&program)).input("to be\n");
        let panicked = catch_unwind(AssertUnwindSafe(|| test.run())).expect_err("it fails");
        let said = panicked.downcast::<String>().expect("it says why");
        let says = format!("a key of {length} bytes without a valid group length");
        assert!(said.contains(&says), "{said}");
    }
}

#[test]
fn program_that_closes_its_input_fails() {
    let said = failure_of_lines("exec 0<&-; exec sleep 60", 100_000);
    assert!(
        said.contains("the mapper `broken` closed its input before reading all of it"),
        "{said}"
    );
}

#[test]
fn failure_names_the_failed_line() {
    let said = failure(r#"printf '\0\0\0\033X{"message":"oh","record":3}'; cat > /dev/null"#);
    assert!(
        said.contains("the mapper `broken` failed, mapping ")
            && said.contains("input-0000 line 4: oh"),
        "{said}"
    );
    assert!(!said.contains("reading"), "{said}");
    let said = failure(r#"printf '\0\0\0\035X{"message":"oh","record":300}'; cat > /dev/null"#);
    assert!(
        said.contains("mapping record 300 of those read from"),
        "{said}"
    );
}

#[test]
fn changed_description_fails_job() {
    let command = r#"if [ -e asked ]; then printf '\0\0\0\035H{"version":1,"input":"bytes"}'; else : > asked; "#;
    let folder = tempfile::tempdir().expect("a folder");
    let asked = folder.path().join("asked");
    let command =
        command.replace("asked", &asked.display().to_string()) + HELLO + "fi; cat > /dev/null";
    let program = FramesProgram::ask(&command, "moody", []).expect("its first hello is right");
    let test = JobTest::new(|| job(&program)).input("to be\n");
    let panicked = catch_unwind(AssertUnwindSafe(|| test.run())).expect_err("it fails");
    let said = panicked.downcast::<String>().expect("it says why");
    assert!(
        said.contains("`moody` describes another job than at submission"),
        "{said}"
    );
}

proptest! {
    /// The fuzz target `frames` checks the same.
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), size in 1..20usize) {
        let mut decoder = FrameDecoder::new(64);
        'stream: for piece in bytes.chunks(size) {
            decoder.push(piece);
            loop {
                match decoder.next_frame() {
                    Ok(Some(frame)) => prop_assert!(frame.payload.len() <= 64),
                    Ok(None) => break,
                    Err(_) => break 'stream,
                }
            }
        }
    }
}
