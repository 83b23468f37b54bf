//! Named outputs of reduces and of map-only jobs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use napreduce::output::{FixedBytes, NamedOutput, Text};
use napreduce::records::Records;
use napreduce::testing::JobTest;
use napreduce::{Emit, Job};

/// Writes numbers, other lines, and line lengths as bytes to three outputs.
fn sorted_out() -> Job {
    let errors = NamedOutput::new("errors", Text);
    let lengths = NamedOutput::new("lengths", FixedBytes { length: 1 });
    Job::text()
        .named_output(&lengths)
        .named_output(&errors)
        .map_only(move |line: &str, out| {
            out.to(&lengths).write(&[b'0' + line.len() as u8]);
            match line.parse::<u64>() {
                Ok(number) => out.emit(number, ()),
                Err(_) => {
                    let before = out.records();
                    out.to(&errors).emit(line, before);
                }
            }
        })
}

#[test]
fn every_map_writes_every_named_output() {
    let test = JobTest::new(sorted_out)
        .input("1\nx\n22\n")
        .input("3\n")
        .combine_files(false);
    let output = test.run();
    assert_eq!(output.parts, [b"1\n22\n".to_vec(), b"3\n".to_vec()]);
    assert_eq!(output.named["errors"], [b"x\t1\n".to_vec(), Vec::new()]);
    assert_eq!(output.named["lengths"], [b"112".to_vec(), b"1".to_vec()]);
    assert_eq!(output.counters.get("OUTPUT_RECORDS errors"), 1);
    assert_eq!(output.counters.get("OUTPUT_RECORDS lengths"), 4);
    assert_eq!(output.counters.get("MAP_OUTPUT_RECORDS"), 3);
    assert_eq!(output.counters.get("BYTES_WRITTEN"), 7 + 4 + 4);
}

#[test]
fn multi_output_map_is_preemption_safe() {
    JobTest::new(sorted_out)
        .input("1\nx\n22\ny\n")
        .input("3\nz\n")
        .assert_preemption_safe();
    JobTest::new(sorted_out)
        .input("1\nx\n22\ny\n3\nz\n")
        .split_size(5)
        .assert_safe_at_random(1, 8);
}

/// Words by frequency: unique words go to the parts, others to typed records, whose format is stateful.
fn by_frequency() -> Job {
    let often = NamedOutput::new("often", Records::<String, u64>::default());
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            line.split(' ').for_each(|word| out.emit(word, 1))
        })
        .named_output(&often)
        .reduce(move |word, counts, out| match counts.sum() {
            1 => out.emit(word, ()),
            count => out.to(&often).emit(word, count),
        })
}

#[test]
fn multi_output_reduce_is_preemption_safe() {
    let test = JobTest::new(by_frequency)
        .input("to be or not to be\nis a question\n")
        .reduces(2);
    let output = test.run();
    let mut lines: Vec<String> = output.text().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["a", "is", "not", "or", "question"]);
    assert_eq!(output.counters.get("OUTPUT_RECORDS often"), 2);
    assert_eq!(output.named["often"].len(), 2);
    test.assert_preemption_safe();
    let read =
        || Job::records::<String, u64>().map_only(|(word, count), out| out.emit(word, count));
    let typed = output.named["often"]
        .iter()
        .fold(JobTest::new(read), |test, part| test.input(part));
    let mut lines: Vec<String> = typed.run().text().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["be\t2", "to\t2"]);
}

#[test]
fn named_output_exceeds_its_buffer() {
    let copy = || {
        let twice = NamedOutput::new("twice", Text);
        Job::text()
            .named_output(&twice)
            .map_only(move |line: &str, out| out.to(&twice).emit(line, line))
    };
    let text: String = (0..60_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    let output = JobTest::new(copy).input(&text).run();
    let expected: String = text
        .lines()
        .map(|line| format!("{line}\t{line}\n"))
        .collect();
    assert!(output.named_text("twice") == expected && output.text().is_empty());
}

/// Returns the error with which a job is rejected.
fn refused(job: impl Fn() -> Job) -> String {
    let ran = catch_unwind(AssertUnwindSafe(|| JobTest::new(job).input("a\n").run()));
    ran.expect_err("it is wrong")
        .downcast_ref::<String>()
        .expect("a message")
        .clone()
}

#[test]
fn invalid_output_names_are_rejected_at_start() {
    let named = |names: &'static [&str]| {
        move || {
            let source = names.iter().fold(Job::text(), |source, name| {
                source.named_output(&NamedOutput::new(name, Text))
            });
            source.map_only(|_: &str, _| {})
        }
    };
    assert_eq!(
        refused(named(&["part"])),
        "output name \"part\" is reserved for part files; rename the output"
    );
    assert_eq!(
        refused(named(&["a", "b", "a"])),
        "two outputs have the name \"a\"; rename one"
    );
    for names in [
        &[""][..],
        &["a/b"],
        &["../a"],
        &["_a"],
        &["1a"],
        &["a.b"],
        &["a b"],
    ] {
        let message = refused(named(names));
        assert!(
            message.contains("; use up to 100 letters, digits, - and _, beginning with a letter"),
            "{message}"
        );
    }
}

#[test]
fn undeclared_output_fails_job() {
    let forgotten = || {
        let errors = NamedOutput::new("errors", Text);
        Job::text().map_only(move |line: &str, out| out.to(&errors).emit(line, ()))
    };
    let message = refused(forgotten);
    assert!(
        message.contains(
            "the job has no output \"errors\" of this format; declare it with `named_output`"
        ),
        "{message}"
    );
    let in_reduce = || {
        let declared = NamedOutput::new("errors", Text);
        let used = NamedOutput::new("errors", FixedBytes { length: 1 });
        Job::text()
            .map(|line: &str, out: &mut Emit<String, ()>| out.emit(line, ()))
            .named_output(&declared)
            .reduce(move |_, _, out| out.to(&used).write(b"x"))
    };
    let message = refused(in_reduce);
    assert!(
        message.contains("the job has no output \"errors\" of this format"),
        "{message}"
    );
}
