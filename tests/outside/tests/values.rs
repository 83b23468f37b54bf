//! Values of serde types arrive as they were sent, with the features of serde and napreduce that a user's crate has.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use napreduce::codec::Serde;
use napreduce::input::TextLines;
use napreduce::run::Local;
use napreduce::testing::JobTest;
use napreduce::{Dataset, Emit, Job, Value};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Row {
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    second: u64,
    nested: Option<Option<f64>>,
    unit: Option<()>,
    large: (u128, i128),
    shape: Shape,
    event: Event,
    by_pair: BTreeMap<(u8, String), char>,
    #[serde(flatten)]
    others: HashMap<String, Loose>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Shape {
    Point,
    Circle { radius: Option<f32> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", content = "c")]
enum Event {
    Empty,
    Moved(i32, i32),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Loose {
    Text(String),
    Number(f64),
    List(Vec<Option<bool>>),
}

fn rows() -> Vec<Row> {
    let others = HashMap::from([
        ("a".to_owned(), Loose::Number(f64::INFINITY)),
        ("b".to_owned(), Loose::List(vec![None, Some(true)])),
        ("c".to_owned(), Loose::Text("5".to_owned())),
    ]);
    let full = Row {
        first: Some(34),
        second: 65,
        nested: Some(None),
        unit: Some(()),
        large: (u128::MAX, i128::MIN),
        shape: Shape::Circle { radius: Some(-0.0) },
        event: Event::Moved(-1, i32::MAX),
        by_pair: BTreeMap::from([((1, "a".to_owned()), 'ß')]),
        others,
    };
    let sparse = Row {
        first: None,
        second: 1,
        nested: None,
        unit: None,
        large: (0, -1),
        shape: Shape::Point,
        event: Event::Empty,
        by_pair: BTreeMap::new(),
        others: HashMap::new(),
    };
    vec![full, sparse]
}

fn row(line: &str) -> Row {
    rows()[line.parse::<usize>().expect("a number")].clone()
}

/// Text that does not depend on the order of a `HashMap`.
fn row_text(row: &Row) -> String {
    let others: BTreeMap<_, _> = row.others.iter().collect();
    format!(
        "{:?} {others:?}",
        Row {
            others: HashMap::new(),
            ..row.clone()
        }
    )
}

fn texts() -> String {
    rows().iter().map(|row| row_text(row) + "\n").collect()
}

#[test]
fn values_arrive_through_the_codec() {
    for row in rows() {
        let mut bytes = Vec::new();
        Serde::<Row>::encode(row.clone(), true, &mut bytes);
        assert_eq!(Serde::<Row>::decode_owned(&bytes), Ok(row));
    }
}

#[test]
fn rows_of_a_join_arrive() {
    let job = || {
        Job::join("left", TextLines, |line: &str| (line.to_owned(), row(line)))
            .with("right", TextLines, |line: &str| {
                (line.to_owned(), row(line))
            })
            .inner(|_, left, right, out| {
                assert_eq!(left, right);
                out.emit(row_text(left), ());
            })
    };
    let test = JobTest::new(job)
        .input_named("left", "0\n1\n")
        .input_named("right", "0\n1\n");
    assert_eq!(test.run().text(), texts());
    test.assert_preemption_safe();
}

#[test]
fn states_arrive_in_checkpoints() {
    let job = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<String, Serde<Row>>| out.emit(line, row(line)))
            .reduces(1)
            .reduce_resumable(Vec::<Row>::new(), |state, _, values, out| {
                state.extend(values.owned());
                if !values.is_cut() {
                    let last = state.last().expect("a group has a value");
                    out.emit(row_text(last), ());
                }
            })
    };
    let test = JobTest::new(job).input("0\n1\n");
    assert_eq!(test.run().text(), texts());
    test.assert_preemption_safe();
}

#[test]
fn parameters_and_records_arrive() {
    fn shown(parameters: &Row) -> Job {
        let text = row_text(parameters);
        Job::records::<u64, Serde<Row>>().map_only(move |(_, row), out| {
            assert_eq!(row_text(&row), text);
            out.emit(text.as_str(), ());
        })
    }
    for row in rows() {
        let records = Dataset::<(u64, Serde<Row>)>::of([(1, row.clone())]).expect("a dataset");
        let run = napreduce::job(shown)
            .parameters(&row)
            .inputs([&records])
            .run(&Local::threads());
        assert_eq!(
            run.expect("the job").collect().expect("lines"),
            [row_text(&row)]
        );
    }
}

#[test]
fn value_that_would_change_is_refused_with_its_type() {
    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Number {
        Small(u8),
        Large(u64),
    }
    fn refusal<T: Serialize + for<'de> Deserialize<'de> + Debug + Send + 'static>(
        value: T,
    ) -> String {
        let error = Dataset::<(u64, Serde<T>)>::of([(1, value)]).expect_err("it is refused");
        error.to_string()
    }
    let message = refusal(Number::Large(3));
    assert!(
        message.starts_with("a value of type Number is not read back as it was written"),
        "{message}"
    );
    let _ = Number::Small(3);
}
