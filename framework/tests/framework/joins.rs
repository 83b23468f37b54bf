//! Joins equal naive ones, and can be stopped between any two rows.

use std::num::ParseIntError;

use napreduce::Job;
use napreduce::builder::Join;
use napreduce::input::TextLines;
use napreduce::testing::JobTest;
use proptest::collection::vec;
use proptest::prelude::*;

type Table = Vec<(u8, u8)>;

/// Lines of KEY,FIELD.
fn row(line: &str) -> Result<(u8, u8), ParseIntError> {
    let (key, field) = line.split_once(',').unwrap_or((line, ""));
    Ok((key.parse()?, field.parse()?))
}

fn tables() -> Join<u8, u8, u8> {
    Job::join("left", TextLines, row).with("right", TextLines, row)
}

fn inner() -> Job<Joined> {
    tables().inner(|key, left, right, out| out.emit(key, (Some(*left), Some(*right))))
}

fn left() -> Job<Joined> {
    tables().left(|key, left, right, out| out.emit(key, (Some(*left), right.copied())))
}

fn right() -> Job<Joined> {
    tables().right(|key, left, right, out| out.emit(key, (left.copied(), Some(*right))))
}

fn full() -> Job<Joined> {
    tables().full(|key, left, right, out| out.emit(key, (left.copied(), right.copied())))
}

type Joined = (u8, (Option<u8>, Option<u8>));

fn lines(table: &[(u8, u8)]) -> String {
    table
        .iter()
        .map(|(key, field)| format!("{key},{field}\n"))
        .collect()
}

fn test(
    job: fn() -> Job<Joined>,
    left: &[(u8, u8)],
    right: &[(u8, u8)],
) -> JobTest<fn() -> Job<Joined>> {
    JobTest::new(job)
        .input_named("left", lines(left))
        .input_named("right", lines(right))
}

/// The join in memory, with rows of only one table if they are kept.
fn naive(left: &Table, right: &Table, keeps_left: bool, keeps_right: bool) -> String {
    let mut rows = String::new();
    let text = |field: Option<u8>| field.map(|field| field.to_string()).unwrap_or_default();
    for key in 0..=u8::MAX {
        let of_key = |table: &Table| {
            table
                .iter()
                .filter(|(of, _)| *of == key)
                .map(|(_, field)| *field)
                .collect::<Vec<_>>()
        };
        let left = of_key(left);
        let right = of_key(right);
        let mut write = |one: Option<u8>, other: Option<u8>| {
            rows += &format!("{key}\t{}\t{}\n", text(one), text(other))
        };
        for other in &right {
            left.iter().for_each(|one| write(Some(*one), Some(*other)));
            if left.is_empty() && keeps_right {
                write(None, Some(*other));
            }
        }
        if right.is_empty() && keeps_left {
            left.iter().for_each(|one| write(Some(*one), None));
        }
    }
    rows
}

fn some_table() -> impl Strategy<Value = Table> {
    vec((0..6u8, any::<u8>()), 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn joins_equal_naive_joins(one in some_table(), other in some_table(), split_size in 1..40u64) {
        for (job, keeps_left, keeps_right) in
            [(inner as fn() -> Job<Joined>, false, false), (left, true, false), (right, false, true), (full, true, true)]
        {
            let expected = naive(&one, &other, keeps_left, keeps_right);
            prop_assert_eq!(test(job, &one, &other).run().text(), &*expected);
            let merged = test(job, &one, &other).split_size(split_size).fan_in(2).run();
            prop_assert_eq!(merged.text(), &*expected);
        }
    }
}

#[test]
fn joins_are_preemption_safe() {
    let one = [(1, 10), (2, 20), (2, 21), (3, 30)];
    let other = [(2, 1), (2, 2), (0, 3), (3, 4), (2, 5)];
    for job in [inner as fn() -> Job<Joined>, left, right, full] {
        test(job, &one, &other).assert_preemption_safe();
    }
    test(full, &one, &other)
        .for_next_job()
        .assert_preemption_safe();
}

#[test]
fn rows_of_several_inputs_have_own_types() {
    let job = || {
        Job::join("names", TextLines, |line: &str| {
            line.split_once(' ')
                .map(|(id, name)| (id.to_owned(), name.to_owned()))
        })
        .with(
            "marks",
            TextLines,
            |line: &str| -> Result<(String, Vec<f64>), String> {
                let (id, marks) = line
                    .split_once(' ')
                    .ok_or("expected an identifier and marks")?;
                let marks = marks.split(' ').map(str::parse).collect::<Result<_, _>>();
                Ok((
                    id.to_owned(),
                    marks.map_err(|error| format!("{line:?}: {error}"))?,
                ))
            },
        )
        .reduces(2)
        .inner(|id, name, marks, out| out.emit((id, name), marks.iter().sum::<f64>()))
    };
    let test = JobTest::new(job)
        .input_named("names", "a ann\nb bob\nno-name\n")
        .input_named("marks", "b 1 2.5\na 2\n");
    let mut lines: Vec<String> = test.run().text().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["a\tann\t2.0", "b\tbob\t3.5"]);
    assert_eq!(test.run().parts.len(), 2);
}

fn failure(test: JobTest<fn() -> Job<Joined>>) -> String {
    let run = std::panic::AssertUnwindSafe(|| test.run());
    let message = std::panic::catch_unwind(run).expect_err("the job fails");
    message.downcast_ref::<String>().expect("a message").clone()
}

#[test]
fn row_without_key_fails_job() {
    let test = JobTest::new(inner as fn() -> Job<Joined>)
        .input_named("left", "1,2\n")
        .input_named("right", "1\n");
    let message = failure(test);
    assert!(
        message.contains("cannot parse integer from empty string"),
        "{message}"
    );
}

#[test]
fn left_rows_over_memory_fail_job() {
    let many: Table = (0..400_000).map(|number| (7, number as u8)).collect();
    let message = failure(test(inner, &many, &[(7, 1)]).task_memory(1 << 20));
    assert!(
        message
            .contains("the rows of one key in the left input \"left\" take more than 524288 bytes")
            && message.contains("make the other input the left one"),
        "{message}"
    );
    let output = test(inner, &[(7, 1)], &many).task_memory(1 << 20).run();
    assert_eq!(output.counters.get("REDUCE_OUTPUT_RECORDS"), 400_000);
}
