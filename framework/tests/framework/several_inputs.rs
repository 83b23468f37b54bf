//! Jobs with several inputs, each with its own format and map.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use napreduce::input::{ByteLines, FixedRecords, TextLines, WholeFiles};
use napreduce::testing::JobTest;
use napreduce::{Emit, Job, Mapper, Save, TaskError};
use proptest::collection::vec;
use proptest::prelude::*;

type Sides = Emit<(String, bool), String>;

/// Joins each order with the name of its user. Orders are records of four bytes: `ID` and two digits.
fn join() -> Job {
    Job::inputs()
        .add("users", TextLines, |line: &str, out: &mut Sides| {
            let (id, name) = line.split_once(',').ok_or("a user has no comma")?;
            out.emit((id, false), name);
            Ok::<(), &str>(())
        })
        .add(
            "orders",
            FixedRecords { length: 4 },
            |order: &[u8], out: &mut Sides| {
                let order = std::str::from_utf8(order).expect("text");
                out.emit((&order[..2], true), &order[2..]);
            },
        )
        .group_by::<String>()
        .reduce(|id, sides, out| {
            let mut user = None;
            while let Some(((_, is_order), field)) = sides.next_entry() {
                match (is_order, &user) {
                    (false, _) => user = Some(field.to_owned()),
                    (true, Some(user)) => out.emit((id, user), field),
                    (true, None) => {}
                }
            }
        })
}

fn id(number: u8) -> String {
    format!("{number:02}")
}

/// The expected join of users and orders, by nested loops.
fn joined(users: &BTreeMap<u8, String>, orders: &[(u8, u8)]) -> String {
    let mut text = String::new();
    for (user, name) in users {
        for (_, amount) in orders.iter().filter(|(of, _)| of == user) {
            writeln!(text, "{}\t{name}\t{amount:02}", id(*user)).expect("memory takes it");
        }
    }
    text
}

fn test_of(users: &BTreeMap<u8, String>, orders: &[(u8, u8)]) -> JobTest<fn() -> Job> {
    let users: String = users
        .iter()
        .map(|(user, name)| format!("{},{name}\n", id(*user)))
        .collect();
    let orders: String = orders
        .iter()
        .map(|(user, amount)| format!("{}{amount:02}", id(*user)))
        .collect();
    JobTest::new(join as fn() -> Job)
        .input_named("orders", orders)
        .input_named("users", users)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn join_equals_nested_loops(
        users in proptest::collection::btree_map(0u8..20, "[a-z]{0,9}", 0..12),
        orders in vec((0u8..20, 0u8..100), 0..40),
        split_size in 1u64..60,
        combines in any::<bool>(),
    ) {
        let test = test_of(&users, &orders).split_size(split_size).combine_files(combines);
        prop_assert_eq!(test.run().text(), joined(&users, &orders));
    }
}

#[test]
fn join_is_preemption_safe() {
    let users = BTreeMap::from([
        (1, "ann".to_owned()),
        (2, "bob".to_owned()),
        (7, String::new()),
    ]);
    let orders = [(2, 30), (1, 12), (3, 99), (2, 5), (7, 1), (1, 1)];
    test_of(&users, &orders)
        .split_size(9)
        .reduces(2)
        .assert_preemption_safe();
    test_of(&users, &orders).assert_safe_at_random(1, 5);
}

#[test]
fn all_formats_can_be_combined() {
    let lengths = || {
        Job::inputs()
            .add(
                "text",
                TextLines,
                |line: &str, out: &mut Emit<String, u64>| out.emit("text", line.len() as u64),
            )
            .add("bytes", ByteLines, |line: &[u8], out| {
                out.emit("bytes", line.len() as u64)
            })
            .add("files", WholeFiles, |file, out| {
                out.emit("files", file.bytes.len() as u64)
            })
            .add("rows", FixedRecords { length: 3 }, |row: &[u8], out| {
                out.emit("rows", row.len() as u64)
            })
            .combine(|sum, more| *sum += more)
            .reduce_total(|kind, sum, out| out.emit(kind, sum))
    };
    let test = JobTest::new(lengths)
        .input_named("rows", "abcdef")
        .input_named("text", "to be\n")
        .input_named("text", "or not\n")
        .input_named("bytes", b"\xff\xfe\n")
        .input_named("files", "one\ntwo\n");
    assert_eq!(test.run().text(), "bytes\t2\nfiles\t8\nrows\t6\ntext\t11\n");
    test.assert_preemption_safe();
}

#[test]
fn total_order_samples_all_inputs() {
    let sorted = || {
        Job::inputs()
            .add(
                "words",
                TextLines,
                |word: &str, out: &mut Emit<String, ()>| out.emit(word, ()),
            )
            .add(
                "letters",
                FixedRecords { length: 1 },
                |letter: &[u8], out| {
                    out.emit(std::str::from_utf8(letter).expect("a letter"), ());
                },
            )
            .total_order()
            .reduces(3)
            .reduce(|word, _, out| out.emit(word, ()))
    };
    let test = JobTest::new(sorted)
        .input_named("letters", "qgzxc")
        .input_named("words", "apple\nhat\nmouse\nzoo\n");
    let output = test.split_size(2).run();
    assert_eq!(output.text(), "apple\nc\ng\nhat\nmouse\nq\nx\nz\nzoo\n");
    assert!(
        output.parts.iter().all(|part| !part.is_empty()),
        "{:?}",
        output.parts
    );
}

/// Numbers the lines of each file.
#[derive(Clone, Default)]
struct Numbered(u64);

impl Mapper for Numbered {
    type Input = TextLines;
    type Key = String;
    type Value = u64;

    fn map(&mut self, line: &str, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
        self.0 += 1;
        out.emit(line, self.0);
        Ok(())
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        state.extend_from_slice(&self.0.to_le_bytes());
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let bytes = state
            .try_into()
            .map_err(|_| TaskError::task("a state of another length"))?;
        self.0 = u64::from_le_bytes(bytes);
        Ok(())
    }
}

#[test]
fn stateful_mapper_and_closure_can_be_combined() {
    let places = || {
        Job::inputs()
            .add_mapper("numbered", TextLines, Numbered::default())
            .add("plain", TextLines, |line: &str, out| out.emit(line, 0))
            .reduce(|line, numbers, out| out.emit(line, numbers.owned().collect::<Vec<_>>().len()))
    };
    let test = JobTest::new(places)
        .input_named("numbered", "a\nb\nc\n")
        .input_named("plain", "c\na\na\n");
    assert_eq!(test.run().text(), "a\t3\nb\t1\nc\t2\n");
    test.assert_preemption_safe();
}

/// Returns the error with which a definition is rejected.
fn refused(job: fn() -> Job) -> String {
    let ran = catch_unwind(AssertUnwindSafe(|| JobTest::new(job).run()));
    let panic = ran.expect_err("the definition is wrong");
    panic.downcast_ref::<String>().expect("a message").clone()
}

#[test]
fn duplicate_and_untypeable_input_names_are_rejected() {
    fn named(names: &[&str]) -> Job {
        let stage = names.iter().fold(Job::inputs(), |inputs, name| {
            inputs.add(name, TextLines, |line: &str, out: &mut Emit<String, ()>| {
                out.emit(line, ())
            })
        });
        stage.reduce(|line, _, out| out.emit(line, ()))
    }
    assert_eq!(
        refused(|| named(&["a", "b", "a"])),
        "two inputs have the name \"a\"; rename one"
    );
    assert_eq!(
        refused(|| named(&[])),
        "the job has no input; add one to `Job::inputs()`"
    );
    for wrong in ["", "a=b", "1", "a b", "é"] {
        let job = format!(
            "invalid input name {wrong:?}; use letters, digits, - and _, beginning with a letter"
        );
        let said = catch_unwind(AssertUnwindSafe(|| JobTest::new(|| named(&[wrong])).run()));
        assert_eq!(
            said.expect_err("wrong").downcast_ref::<String>(),
            Some(&job)
        );
    }
}

#[test]
fn zero_reduces_are_rejected() {
    fn job() -> Job {
        Job::text()
            .map(|line: &str, out: &mut Emit<String, ()>| out.emit(line, ()))
            .reduces(0)
            .reduce(|line, _, out| out.emit(line, ()))
    }
    assert_eq!(refused(job), "the job has 0 reduces; use 1 to 100000");
}
