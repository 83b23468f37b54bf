//! Records that a map rejects: they fail the job, or are skipped and counted up to a limit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use napreduce::builder::BadRecord;
use napreduce::input::{BadRows, TextRecords, WholeFile};
use napreduce::testing::JobTest;
use napreduce::{Emit, Job};

/// Doubles numbers; output before a bad record stays.
fn doubled() -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<u64, ()>| -> Result<(), BadRecord> {
            for number in line.split(' ') {
                out.emit(number.parse::<u64>()? * 2, ());
            }
            Ok(())
        })
        .total_order()
        .reduce(|number, _, out| out.emit(number, ()))
}

fn halved() -> Job {
    Job::text().map_only(|line: &str, out| {
        let number: u64 = line.parse().map_err(|_| BadRecord::new(format!("no number: {line:?}")))?;
        out.emit(number / 2, ());
        Ok::<(), BadRecord>(())
    })
}

const INPUT: &str = "1 2\nx\n3 y\n4\n";

fn refused(test: JobTest<fn() -> Job>) -> String {
    let ran = catch_unwind(AssertUnwindSafe(|| test.run()));
    ran.expect_err("it fails").downcast_ref::<String>().expect("a message").clone()
}

#[test]
fn bad_record_fails_job_with_line_and_remedy() {
    let message = refused(JobTest::new(halved as fn() -> Job).input("4\nx\n"));
    let expected = "input-0000 has a bad record at line 2: no number: \"x\"; the record begins with \"x\"; fix the record, or \
                    pass --bad-records skip to skip bad records";
    assert!(message.ends_with(expected), "{message}");
    let message = refused(JobTest::new(doubled as fn() -> Job).input(INPUT).reduces(2));
    assert!(
        message.contains("at line 2: invalid digit found in string; the record begins with \"x\"; "),
        "{message}"
    );
}

#[test]
fn bad_record_quote_is_truncated() {
    let long = format!("1\n\u{feff}{}\r\n", "é".repeat(5000));
    let message = refused(JobTest::new(doubled as fn() -> Job).input(&long));
    assert!(message.contains("ééé\u{fffd}\"...; fix the record") && message.len() < 700, "{message}");
    // A byte order mark is not part of the first record.
    let message = refused(JobTest::new(doubled as fn() -> Job).input("\u{feff}x\r\n"));
    assert!(message.contains(" at line 1: ") && message.contains("begins with \"x\";"), "{message}");
    let message = refused(JobTest::new(doubled as fn() -> Job).input("1\n2\n3\nx").split_size(3));
    assert!(message.contains(" at byte 6: ") && message.contains("begins with \"x\";"), "{message}");
    fn marked() -> Job {
        Job::input(TextRecords::beginning_with("#"))
            .map_only(|_: &str, _| Err::<(), BadRecord>(BadRecord::new("it has two lines")))
    }
    let message = refused(JobTest::new(marked as fn() -> Job).input("#a\nb\n#c\n"));
    assert!(
        message.contains("at line 1: it has two lines; the record begins with \"#a\"; fix the record"),
        "{message}"
    );
    fn whole() -> Job {
        Job::whole_files().map_only(|_: WholeFile<'_>, _| Err::<(), BadRecord>(BadRecord::new("it is empty")))
    }
    let message = refused(JobTest::new(whole as fn() -> Job).input("a"));
    let expected = "a bad record: it is empty (fix the record, or pass --bad-records skip to skip bad records), reading ";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn skipped_records_of_samples_are_counted() {
    for reduces in [1, 2] {
        let test = JobTest::new(doubled).input(INPUT).reduces(reduces).bad_records(BadRows::Skip);
        let output = test.run();
        assert_eq!((output.text().as_str(), output.counters.get("BAD_RECORDS")), ("2\n4\n6\n8\n", 2));
        assert_eq!(output.counters.get("MAP_INPUT_RECORDS"), 4);
    }
    let test = JobTest::new(halved).input("4\nx\n6\ny\n").bad_records(BadRows::Skip);
    assert_eq!((test.run().text().as_str(), test.run().counters.get("BAD_RECORDS")), ("2\n3\n", 2));
}

#[test]
fn skip_limit_applies_per_map() {
    let of = |input: &str, most| {
        JobTest::new(halved as fn() -> Job).input(input).bad_records(BadRows::AtMost(most))
    };
    assert_eq!(of("x\n4\ny\n", 2).run().text(), "2\n");
    let message = refused(of("x\n4\ny\n", 1));
    let expected = "input-0000 has too many bad records (limit 1), the last one at line 3: no number: \
                    \"y\"; the record begins with \"y\"; fix the records, or raise --bad-records";
    assert!(message.ends_with(expected), "{message}");
    // Two maps, each with one bad record.
    assert_eq!(of("4\nx\n", 1).input("y\n6\n").setting("combine-files=false").run().text(), "2\n3\n");
}

#[test]
fn skip_count_survives_preemption() {
    JobTest::new(doubled).input(INPUT).bad_records(BadRows::Skip).assert_preemption_safe();
    JobTest::new(halved).input("4\nx\n6\ny\n8\n").bad_records(BadRows::AtMost(2)).assert_preemption_safe();
}

#[test]
fn other_errors_are_not_skipped() {
    fn wrong() -> Job {
        Job::text().map_only(|line: &str, _| Err::<(), _>(format!("refused: {line}")))
    }
    let message = refused(JobTest::new(wrong as fn() -> Job).input("a\n").bad_records(BadRows::Skip));
    assert!(message.contains("refused: a"), "{message}");
}

#[test]
fn closure_that_always_fails_compiles() {
    fn unwritten() -> Job {
        Job::text()
            .map(|_: &str, _: &mut Emit<String, u64>| panic!("still to be written"))
            .reduce(|_, _, _| panic!("this too"))
    }
    let ran = catch_unwind(AssertUnwindSafe(|| JobTest::new(unwritten).input("a\n").run()));
    assert_eq!(ran.expect_err("it fails").downcast_ref::<&str>(), Some(&"still to be written"));
}
