//! Records that a map rejects: they fail the job, or are skipped and counted up to a limit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use napreduce::builder::BadRecord;
use napreduce::input::{Skip, TextLines, TextRecords, WholeFile};
use napreduce::testing::JobTest;
use napreduce::{Emit, Job, Mapper, TaskError};

/// Doubles numbers; output before a bad record stays.
fn doubled() -> Job {
    Job::text()
        .map(
            |line: &str, out: &mut Emit<u64, ()>| -> Result<(), BadRecord> {
                for number in line.split(' ') {
                    out.emit(number.parse::<u64>()? * 2, ());
                }
                Ok(())
            },
        )
        .total_order()
        .reduce(|number, _, out| out.emit(number, ()))
}

fn halved() -> Job {
    Job::text().map_only(|line: &str, out| {
        let number: u64 = line
            .parse()
            .map_err(|_| BadRecord::new(format!("no number: {line:?}")))?;
        out.emit(number / 2, ());
        Ok::<(), BadRecord>(())
    })
}

const INPUT: &str = "1 2\nx\n3 y\n4\n";

fn refused(test: JobTest<fn() -> Job>) -> String {
    let ran = catch_unwind(AssertUnwindSafe(|| test.run()));
    ran.expect_err("it fails")
        .downcast_ref::<String>()
        .expect("a message")
        .clone()
}

#[test]
fn bad_record_fails_job_with_line_and_remedy() {
    let message = refused(JobTest::new(halved as fn() -> Job).input("4\nx\n"));
    let expected = "input-0000 has a bad record at line 2: no number: \"x\"; the record begins with \"x\"; fix the record, or \
                    pass --bad-input skip to skip bad records";
    assert!(message.ends_with(expected), "{message}");
    let message = refused(JobTest::new(doubled as fn() -> Job).input(INPUT).reduces(2));
    assert!(
        message
            .contains("at line 2: invalid digit found in string; the record begins with \"x\"; "),
        "{message}"
    );
}

#[test]
fn bad_record_quote_is_truncated() {
    let long = format!("1\n\u{feff}{}\r\n", "é".repeat(5000));
    let message = refused(JobTest::new(doubled as fn() -> Job).input(&long));
    assert!(
        message.contains(&format!(
            "with \"\\u{{feff}}{}\"...; fix the record",
            "é".repeat(119)
        )),
        "{message}"
    );
    // A byte order mark is not part of the first record.
    let message = refused(JobTest::new(doubled as fn() -> Job).input("\u{feff}x\r\n"));
    assert!(
        message.contains(" at line 1: ") && message.contains("begins with \"x\";"),
        "{message}"
    );
    let message = refused(
        JobTest::new(doubled as fn() -> Job)
            .input("1\n2\n3\nx")
            .split_size(3),
    );
    assert!(
        message.contains(" at byte 6: ") && message.contains("begins with \"x\";"),
        "{message}"
    );
    fn marked() -> Job {
        Job::input(TextRecords::beginning_with("#"))
            .map_only(|_: &str, _| Err::<(), BadRecord>(BadRecord::new("it has two lines")))
    }
    let message = refused(JobTest::new(marked as fn() -> Job).input("#a\nb\n#c\n"));
    assert!(
        message
            .contains("at line 1: it has two lines; the record begins with \"#a\"; fix the record"),
        "{message}"
    );
    fn whole() -> Job {
        Job::whole_files()
            .map_only(|_: WholeFile<'_>, _| Err::<(), BadRecord>(BadRecord::new("it is empty")))
    }
    let message = refused(JobTest::new(whole as fn() -> Job).input("a"));
    let expected = "a bad record: it is empty (fix the record, or pass --bad-input skip to skip bad records), reading ";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn skipped_records_of_samples_are_counted() {
    for reduces in [1, 2] {
        let test = JobTest::new(doubled)
            .input(INPUT)
            .reduces(reduces)
            .on_bad_input(Skip::All);
        let output = test.run();
        assert_eq!(
            (output.text().as_str(), output.counters.get("BAD_RECORDS")),
            ("2\n4\n6\n8\n", 2)
        );
        assert_eq!(output.counters.get("MAP_INPUT_RECORDS"), 4);
    }
    let test = JobTest::new(halved)
        .input("4\nx\n6\ny\n")
        .on_bad_input(Skip::All);
    assert_eq!(
        (
            test.run().text().as_str(),
            test.run().counters.get("BAD_RECORDS")
        ),
        ("2\n3\n", 2)
    );
}

#[test]
fn skip_limit_applies_per_map() {
    let of = |input: &str, most| {
        JobTest::new(halved as fn() -> Job)
            .input(input)
            .on_bad_input(Skip::AtMost(most))
    };
    assert_eq!(of("x\n4\ny\n", 2).run().text(), "2\n");
    let message = refused(of("x\n4\ny\n", 1));
    let expected = "input-0000 has too many bad records (limit 1), the last one at line 3: no number: \
                    \"y\"; the record begins with \"y\"; fix the records, or raise --bad-input";
    assert!(message.ends_with(expected), "{message}");
    // Two maps, each with one bad record.
    assert_eq!(
        of("4\nx\n", 1)
            .input("y\n6\n")
            .combine_files(false)
            .run()
            .text(),
        "2\n3\n"
    );
}

#[test]
fn skip_count_survives_preemption() {
    JobTest::new(doubled)
        .input(INPUT)
        .on_bad_input(Skip::All)
        .assert_preemption_safe();
    JobTest::new(halved)
        .input("4\nx\n6\ny\n8\n")
        .on_bad_input(Skip::AtMost(2))
        .assert_preemption_safe();
}

#[test]
fn other_errors_are_not_skipped() {
    fn wrong() -> Job {
        Job::text().map_only(|line: &str, _| Err::<(), _>(format!("refused: {line}")))
    }
    let message = refused(
        JobTest::new(wrong as fn() -> Job)
            .input("a\n")
            .on_bad_input(Skip::All),
    );
    assert!(message.contains("refused: a"), "{message}");
}

#[test]
fn closure_error_names_record_and_remedy() {
    fn parsed() -> Job {
        Job::text()
            .map(
                |line: &str, out: &mut Emit<u64, ()>| -> Result<(), std::num::ParseIntError> {
                    out.emit(line.parse()?, ());
                    Ok(())
                },
            )
            .reduce(|number, _, out| out.emit(number, ()))
    }
    let message = refused(JobTest::new(parsed as fn() -> Job).input("17\n\t1 2\n"));
    assert!(
        message.contains("failed, undisturbed: invalid digit found in string, reading /"),
        "{message}"
    );
    let end = "input-0000 line 2; the record begins with \"\\t1 2\"; fix the record, or return builder::BadRecord for it and \
               pass --bad-input skip";
    assert!(message.ends_with(end), "{message}");
}

#[test]
fn error_of_mapper_names_record() {
    #[derive(Clone)]
    struct Closed;
    impl Mapper for Closed {
        type Input = TextLines;
        type Key = u64;
        type Value = ();

        fn map(&mut self, line: &str, _: &mut Emit<u64, ()>) -> Result<(), TaskError> {
            if line == "b" {
                Err(TaskError::retryable("the lookup service is closed"))
            } else {
                Ok(())
            }
        }
    }
    fn closed() -> Job {
        Job::text()
            .mapper(Closed)
            .reduce(|number, _, out| out.emit(number, ()))
    }
    let message = refused(JobTest::new(closed as fn() -> Job).input("a\nb\n"));
    assert!(
        message.contains("the lookup service is closed, reading /"),
        "{message}"
    );
    assert!(
        message.ends_with("input-0000 line 2; the record begins with \"b\""),
        "{message}"
    );
}

#[test]
fn error_of_reduce_names_group_and_key() {
    fn negative() -> Job {
        Job::text()
            .map(|line: &str, out: &mut Emit<(String, i64), ()>| out.emit((line, -1), ()))
            .group_by::<String>()
            .reduce(|name, _, _| {
                if name == "b\tc" {
                    Err("the balance is negative")
                } else {
                    Ok(())
                }
            })
    }
    let message = refused(JobTest::new(negative as fn() -> Job).input("a\nb\tc\n"));
    let end = "the balance is negative, reducing partition 0 group 1, key \"b\\tc\"";
    assert!(message.ends_with(end), "{message}");
    fn refusing() -> Job {
        Job::text()
            .map(|line: &str, out: &mut Emit<u64, ()>| out.emit(line.len() as u64, ()))
            .reduce(|_, _, _| Err::<(), _>("no"))
    }
    let message = refused(JobTest::new(refusing as fn() -> Job).input("to be\n"));
    let end = "no, reducing partition 0 group 0, key b\"\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05\"";
    assert!(message.ends_with(end), "{message}");
}

#[test]
fn invalid_text_names_line_and_remedy() {
    for total_order in [false, true] {
        let job = move || {
            let mapped =
                Job::text().map(|line: &str, out: &mut Emit<String, ()>| out.emit(line, ()));
            let mapped = if total_order {
                mapped.total_order()
            } else {
                mapped
            };
            mapped.reduce(|line, _, out| out.emit(line, ()))
        };
        let test = JobTest::new(job).input(b"fine\nnot \xff fine\n").reduces(2);
        let ran = catch_unwind(AssertUnwindSafe(|| test.run()));
        let message = ran
            .expect_err("it fails")
            .downcast_ref::<String>()
            .expect("a message")
            .clone();
        let end = "input-0000 has invalid UTF-8 at byte 9, in line 2; convert the file, read lines of bytes (Job::bytes()), or \
                   replace invalid bytes (Job::lossy_text())";
        assert!(message.ends_with(end), "{message}");
    }
}

#[test]
fn closure_that_always_fails_compiles() {
    fn unwritten() -> Job {
        Job::text()
            .map(|_: &str, _: &mut Emit<String, u64>| panic!("still to be written"))
            .reduce(|_, _, _| panic!("this too"))
    }
    let ran = catch_unwind(AssertUnwindSafe(|| {
        JobTest::new(unwritten).input("a\n").run()
    }));
    assert_eq!(
        ran.expect_err("it fails").downcast_ref::<&str>(),
        Some(&"still to be written")
    );
}
