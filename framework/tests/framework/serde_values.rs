//! Values of any serde type arrive as they were sent, or are refused with the name of their type: through the codec, a
//! shuffle, a join, typed records, states in checkpoints, and parameters.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use napreduce::codec::Serde;
use napreduce::input::TextLines;
use napreduce::output::Text;
use napreduce::run::Local;
use napreduce::testing::JobTest;
use napreduce::{Dataset, Emit, Job, Resumable, Value};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A type whose values can be sent, compared by their text.
trait Sent: Serialize + DeserializeOwned + Debug + Clone + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Debug + Clone + Send + Sync + 'static> Sent for T {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Skipped<T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<T>,
    second: u8,
    #[serde(skip)]
    never: u8,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Flat<T> {
    id: u64,
    #[serde(flatten)]
    inner: Skipped<T>,
    #[serde(flatten)]
    others: BTreeMap<String, T>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged<T> {
    Nothing,
    Wide { first: T, more: u8 },
    Narrow { first: T },
    Number(u64),
    Text(String),
    Pair(T, T),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Internal<T> {
    Unit,
    Struct { value: T },
    Other(Skipped<T>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", content = "content", rename_all = "kebab-case")]
enum Adjacent<T> {
    Unit,
    One(T),
    TwoOfThem(T, T),
    Fields { value: T },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum External<T> {
    Unit,
    One(T),
    Two(T, T),
    Fields { value: T },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Newtype<T>(T);

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 16
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A type of which values are drawn.
trait Drawn: Sent {
    fn draw(random: &mut Random) -> Self;
}

impl Drawn for () {
    fn draw(_: &mut Random) {}
}

impl Drawn for bool {
    fn draw(random: &mut Random) -> bool {
        random.below(2) == 1
    }
}

impl Drawn for u8 {
    fn draw(random: &mut Random) -> u8 {
        random.next() as u8
    }
}

impl Drawn for i64 {
    fn draw(random: &mut Random) -> i64 {
        [0, 1, -1, i64::MIN, i64::MAX, random.next() as i64][random.below(6) as usize]
    }
}

impl Drawn for u64 {
    fn draw(random: &mut Random) -> u64 {
        [0, 1, u64::MAX, random.next()][random.below(4) as usize]
    }
}

impl Drawn for u128 {
    fn draw(random: &mut Random) -> u128 {
        [0, u128::MAX, u128::from(random.next())][random.below(3) as usize]
    }
}

impl Drawn for i128 {
    fn draw(random: &mut Random) -> i128 {
        [0, i128::MIN, i128::MAX][random.below(3) as usize]
    }
}

impl Drawn for f64 {
    fn draw(random: &mut Random) -> f64 {
        let numbers = [
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            -0.0,
            0.1,
            5e-324,
            f64::MAX,
        ];
        numbers[random.below(7) as usize]
    }
}

impl Drawn for f32 {
    fn draw(random: &mut Random) -> f32 {
        [f32::INFINITY, f32::NAN, -0.0, 0.1, f32::MIN_POSITIVE][random.below(5) as usize]
    }
}

impl Drawn for char {
    fn draw(random: &mut Random) -> char {
        ['a', '\0', 'ß', '\u{10ffff}'][random.below(4) as usize]
    }
}

impl Drawn for String {
    fn draw(random: &mut Random) -> String {
        ["", "first", "kind", "Unit", "5", "\0\n\u{feff}"][random.below(6) as usize].to_owned()
    }
}

impl<T: Drawn> Drawn for Option<T> {
    fn draw(random: &mut Random) -> Option<T> {
        if random.below(3) == 0 {
            None
        } else {
            Some(T::draw(random))
        }
    }
}

impl<T: Drawn> Drawn for Vec<T> {
    fn draw(random: &mut Random) -> Vec<T> {
        (0..random.below(4)).map(|_| T::draw(random)).collect()
    }
}

impl<A: Drawn, B: Drawn> Drawn for (A, B) {
    fn draw(random: &mut Random) -> (A, B) {
        (A::draw(random), B::draw(random))
    }
}

impl<K: Drawn + Ord, T: Drawn> Drawn for BTreeMap<K, T> {
    fn draw(random: &mut Random) -> BTreeMap<K, T> {
        (0..random.below(4))
            .map(|_| (K::draw(random), T::draw(random)))
            .collect()
    }
}

impl<T: Drawn> Drawn for Newtype<T> {
    fn draw(random: &mut Random) -> Newtype<T> {
        Newtype(T::draw(random))
    }
}

impl<T: Drawn> Drawn for Skipped<T> {
    fn draw(random: &mut Random) -> Skipped<T> {
        Skipped {
            first: Option::draw(random),
            second: u8::draw(random),
            never: 0,
        }
    }
}

impl<T: Drawn> Drawn for Flat<T> {
    fn draw(random: &mut Random) -> Flat<T> {
        Flat {
            id: u64::draw(random),
            inner: Skipped::draw(random),
            others: BTreeMap::draw(random),
        }
    }
}

impl<T: Drawn> Drawn for Untagged<T> {
    fn draw(random: &mut Random) -> Untagged<T> {
        match random.below(6) {
            0 => Untagged::Nothing,
            1 => Untagged::Wide {
                first: T::draw(random),
                more: u8::draw(random),
            },
            2 => Untagged::Narrow {
                first: T::draw(random),
            },
            3 => Untagged::Number(u64::draw(random)),
            4 => Untagged::Text(String::draw(random)),
            _ => Untagged::Pair(T::draw(random), T::draw(random)),
        }
    }
}

impl<T: Drawn> Drawn for Internal<T> {
    fn draw(random: &mut Random) -> Internal<T> {
        match random.below(3) {
            0 => Internal::Unit,
            1 => Internal::Struct {
                value: T::draw(random),
            },
            _ => Internal::Other(Skipped::draw(random)),
        }
    }
}

impl<T: Drawn> Drawn for Adjacent<T> {
    fn draw(random: &mut Random) -> Adjacent<T> {
        match random.below(4) {
            0 => Adjacent::Unit,
            1 => Adjacent::One(T::draw(random)),
            2 => Adjacent::TwoOfThem(T::draw(random), T::draw(random)),
            _ => Adjacent::Fields {
                value: T::draw(random),
            },
        }
    }
}

impl<T: Drawn> Drawn for External<T> {
    fn draw(random: &mut Random) -> External<T> {
        match random.below(4) {
            0 => External::Unit,
            1 => External::One(T::draw(random)),
            2 => External::Two(T::draw(random), T::draw(random)),
            _ => External::Fields {
                value: T::draw(random),
            },
        }
    }
}

fn texts<T: Sent>(values: &[T]) -> Vec<String> {
    values.iter().map(|value| format!("{value:?}")).collect()
}

fn encoded<T: Sent>(value: &T) -> Result<Vec<u8>, String> {
    let value = value.clone();
    let encode = || {
        let mut bytes = Vec::new();
        Serde::<T>::encode(value, true, &mut bytes);
        bytes
    };
    catch_unwind(AssertUnwindSafe(encode))
        .map_err(|panic| *panic.downcast::<String>().expect("a message"))
}

/// Returns the text of the value that arrives, or the refusal.
fn arrived<T: Sent>(value: &T) -> Result<String, String> {
    let bytes = encoded(value)?;
    Ok(format!(
        "{:?}",
        Serde::<T>::decode_owned(&bytes).expect("it was encoded")
    ))
}

fn refusal<T: Sent>(value: &T) -> String {
    arrived(value).expect_err("it is refused")
}

fn lines(count: usize) -> String {
    (0..count).map(|number| format!("{number}\n")).collect()
}

fn number(line: &str) -> usize {
    line.parse().expect("a number")
}

fn arrive_by_shuffle<T: Sent>(values: &[T]) {
    let sent = values.to_vec();
    let job = move || {
        let sent = sent.clone();
        Job::text()
            .map(move |line: &str, out: &mut Emit<u64, Serde<T>>| {
                out.emit(number(line) as u64, sent[number(line)].clone());
            })
            .reduces(1)
            .reduce(|_, values, out| {
                values
                    .owned()
                    .for_each(|value| out.emit(format!("{value:?}"), ()))
            })
    };
    let test = JobTest::new(job).input(lines(values.len()));
    assert_eq!(test.run().text(), joined(&texts(values)));
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn arrive_by_join<T: Sent>(values: &[T]) {
    let sent = values.to_vec();
    let job = move || {
        let left = sent.clone();
        let right = sent.clone();
        Job::join("left", TextLines, move |line: &str| {
            (number(line) as u64, left[number(line)].clone())
        })
        .with("right", TextLines, move |line: &str| {
            (number(line) as u64, right[number(line)].clone())
        })
        .reduces(1)
        .output(Text)
        .inner(|_, left: &T, right: &T, out| out.emit(format!("{left:?}"), format!("{right:?}")))
    };
    let test = JobTest::new(job)
        .input_named("left", lines(values.len()))
        .input_named("right", lines(values.len()));
    let pairs: Vec<_> = texts(values)
        .iter()
        .map(|text| format!("{text}\t{text}"))
        .collect();
    assert_eq!(test.run().text(), joined(&pairs));
    test.assert_preemption_safe();
}

fn arrive_by_state<T: Sent>(values: &[T]) {
    let sent = values.to_vec();
    let kept = values.to_vec();
    let of_map = move || {
        let sent = sent.clone();
        Job::text().map_only_resumable(None::<T>, move |last: &mut Option<T>, line: &str, out| {
            out.emit(format!("{last:?}"), ());
            *last = Some(sent[number(line)].clone());
        })
    };
    JobTest::new(of_map)
        .input(lines(values.len()))
        .assert_preemption_safe();
    let of_reduce = move || {
        let kept = kept.clone();
        Job::text()
            .map(|line: &str, out: &mut Emit<u64, ()>| out.emit(number(line) as u64, ()))
            .reduces(1)
            .output(Text)
            .reduce_resumable(Vec::<T>::new(), move |state, key, values, out| {
                while values.next().is_some() {}
                if !values.is_cut() {
                    out.emit(format!("{state:?}"), ());
                    state.push(kept[key as usize].clone());
                }
            })
    };
    JobTest::new(of_reduce)
        .input(lines(values.len()))
        .assert_preemption_safe();
}

#[derive(Resumable)]
struct Kept<T> {
    number: u8,
    value: T,
}

fn arrive_by_derived_state<T: Sent>(value: &T) {
    let mut saved = Vec::new();
    Kept {
        number: 7,
        value: value.clone(),
    }
    .save_state(&mut saved)
    .expect("it can be saved");
    let mut restored = Kept {
        number: 0,
        value: value.clone(),
    };
    restored.restore_state(&saved).expect("it was saved");
    assert_eq!(
        (restored.number, format!("{:?}", restored.value)),
        (7, format!("{value:?}"))
    );
}

fn arrive_by_records<T: Sent>(values: &[T]) {
    let pairs = values
        .iter()
        .cloned()
        .zip(0u64..)
        .map(|(value, number)| (number, value));
    let dataset = Dataset::<(u64, Serde<T>)>::of(pairs).expect("a dataset");
    let arrived: Vec<T> = dataset
        .collect()
        .expect("records")
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    assert_eq!(texts(&arrived), texts(values));
}

fn shown<T: Sent>(parameters: &T) -> Job {
    let text = format!("{parameters:?}");
    Job::text().map_only(move |line: &str, out| out.emit(line, text.replace('\n', " ")))
}

fn arrive_as_parameters<T: Sent>(value: &T) {
    let input = Dataset::lines(["line"]).expect("a dataset");
    let run = napreduce::job(shown::<T>)
        .parameters(value)
        .inputs([&input])
        .run(&Local::threads());
    let arrived = run.expect("the job").collect().expect("lines");
    assert_eq!(
        arrived,
        [format!("line\t{}", format!("{value:?}").replace('\n', " "))]
    );
}

/// A value of a type that was drawn as well. One type, so that the jobs below are compiled once.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum AnyValue {
    OptionInOption(Option<Option<u8>>),
    OptionOfUnit(Option<()>),
    Floats(Vec<Option<f64>>),
    SmallFloat((f32, char)),
    Large((u128, Option<i128>)),
    MapByPair(BTreeMap<(u64, String), Option<bool>>),
    MapByOption(BTreeMap<Option<i64>, Vec<()>>),
    MapByEnum(BTreeMap<External<char>, u8>),
    Newtypes(Newtype<Option<Newtype<()>>>),
    Enums(External<External<Option<String>>>),
    SkippedInSkipped(Skipped<Skipped<f64>>),
    ManySkipped(Vec<Skipped<u128>>),
    FlatFloats(Flat<f64>),
    FlatOptions(Flat<Option<u8>>),
    FlatEnums(Flat<External<i64>>),
    FlatLarge(Flat<u128>),
    UntaggedFloats(Untagged<f64>),
    UntaggedOptions(Untagged<Option<String>>),
    UntaggedEnums(Untagged<External<u8>>),
    InternalOptions(Internal<Option<()>>),
    InternalMaps(Internal<BTreeMap<i64, char>>),
    AdjacentOptions(Adjacent<Option<f64>>),
    AdjacentFlat(Adjacent<Flat<(u8, String)>>),
    Nested(Vec<Adjacent<Internal<Untagged<char>>>>),
}

const DRAWS: [fn(&mut Random) -> AnyValue; 24] = [
    |random| AnyValue::OptionInOption(Drawn::draw(random)),
    |random| AnyValue::OptionOfUnit(Drawn::draw(random)),
    |random| AnyValue::Floats(Drawn::draw(random)),
    |random| AnyValue::SmallFloat(Drawn::draw(random)),
    |random| AnyValue::Large(Drawn::draw(random)),
    |random| AnyValue::MapByPair(Drawn::draw(random)),
    |random| AnyValue::MapByOption(Drawn::draw(random)),
    |random| AnyValue::MapByEnum(Drawn::draw(random)),
    |random| AnyValue::Newtypes(Drawn::draw(random)),
    |random| AnyValue::Enums(Drawn::draw(random)),
    |random| AnyValue::SkippedInSkipped(Drawn::draw(random)),
    |random| AnyValue::ManySkipped(Drawn::draw(random)),
    |random| AnyValue::FlatFloats(Drawn::draw(random)),
    |random| AnyValue::FlatOptions(Drawn::draw(random)),
    |random| AnyValue::FlatEnums(Drawn::draw(random)),
    |random| AnyValue::FlatLarge(Drawn::draw(random)),
    |random| AnyValue::UntaggedFloats(Drawn::draw(random)),
    |random| AnyValue::UntaggedOptions(Drawn::draw(random)),
    |random| AnyValue::UntaggedEnums(Drawn::draw(random)),
    |random| AnyValue::InternalOptions(Drawn::draw(random)),
    |random| AnyValue::InternalMaps(Drawn::draw(random)),
    |random| AnyValue::AdjacentOptions(Drawn::draw(random)),
    |random| AnyValue::AdjacentFlat(Drawn::draw(random)),
    |random| AnyValue::Nested(Drawn::draw(random)),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn values_of_drawn_types_arrive_or_are_refused(number in 0..DRAWS.len(), seed in any::<u64>()) {
        let mut random = Random(seed);
        let mut values = Vec::new();
        for _ in 0..20 {
            let value = DRAWS[number](&mut random);
            match arrived(&value) {
                Ok(text) => {
                    prop_assert_eq!(text, format!("{value:?}"));
                    values.push(value);
                }
                Err(refusal) => prop_assert!(refusal.starts_with("a value of type AnyValue "), "{}", refusal),
            }
        }
        values.truncate(2);
        arrive_by_records(&values);
        arrive_by_shuffle(&values);
        arrive_by_join(&values);
        arrive_by_state(&values);
        for value in &values {
            arrive_by_derived_state(value);
            arrive_as_parameters(value);
        }
    }
}

#[test]
fn values_that_json_lacks_arrive() {
    #[derive(Debug, Clone, Serialize, Deserialize)]
    struct Row {
        nested: Option<Option<u8>>,
        unit: Option<()>,
        infinite: Option<f64>,
        nan: f32,
        large: (u128, i128),
        by_pair: HashMap<(u8, String), [u8; 3]>,
    }
    let row = Row {
        nested: Some(None),
        unit: Some(()),
        infinite: Some(f64::NEG_INFINITY),
        nan: f32::from_bits(0x7fc0_1234),
        large: (u128::MAX, i128::MIN),
        by_pair: HashMap::from([((1, "a".to_owned()), [1, 2, 200])]),
    };
    let bytes = encoded(&row).expect("it is not refused");
    let copy = Serde::<Row>::decode_owned(&bytes).expect("it was encoded");
    assert_eq!(copy.nan.to_bits(), row.nan.to_bits());
    assert_eq!(arrived(&row), Ok(format!("{row:?}")));
    arrive_as_parameters(&row);
}

#[test]
fn unordered_collections_arrive() {
    let map: HashMap<String, HashSet<u32>> = (0..50)
        .map(|number| (format!("key {number}"), (0..number).collect()))
        .collect();
    let bytes = encoded(&map).expect("it is not refused");
    assert_eq!(Serde::decode_owned(&bytes), Ok(map));
}

#[test]
fn field_that_is_not_read_back_is_refused_by_name() {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct NotWritten {
        #[serde(skip_serializing)]
        lost: u8,
    }
    let message = refusal(&NotWritten { lost: 1 });
    assert_eq!(
        message,
        "a value of type NotWritten cannot be read back from what its Serialize writes: missing field `lost`; its \
         Serialize and Deserialize must agree"
    );

    #[derive(Debug, Clone, Default, Serialize, Deserialize)]
    #[serde(default)]
    struct Renamed {
        #[serde(rename(serialize = "count"))]
        total: u64,
        kept: u8,
    }
    assert_eq!(
        arrived(&Renamed { total: 0, kept: 1 }),
        Ok("Renamed { total: 0, kept: 1 }".to_owned())
    );
    let message = refusal(&Renamed { total: 7, kept: 1 });
    let expected = "a value of type Renamed is not read back as it was written: integer `7` at `count` is read as integer `0`";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn value_that_is_read_as_another_is_refused_at_any_time() {
    fn none_if_empty<'de, D: serde::Deserializer<'de>>(
        from: D,
    ) -> Result<Option<String>, D::Error> {
        Ok(Option::deserialize(from)?.filter(|text: &String| !text.is_empty()))
    }
    #[derive(Debug, Clone, Serialize, Deserialize)]
    struct Lenient {
        #[serde(deserialize_with = "none_if_empty")]
        name: Option<String>,
    }
    for number in 0..1000 {
        let value = Lenient {
            name: Some(number.to_string()),
        };
        assert_eq!(arrived(&value), Ok(format!("{value:?}")));
    }
    let message = refusal(&Lenient {
        name: Some(String::new()),
    });
    assert!(
        message.contains(
            "Lenient is not read back as it was written: Some(\"\") at `name` is read as None"
        ),
        "{message}"
    );

    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Number {
        Small(u8),
        Large(u64),
    }
    assert_eq!(arrived(&Number::Large(300)), Ok("Large(300)".to_owned()));
    assert_eq!(arrived(&Number::Small(3)), Ok("Small(3)".to_owned()));
    assert!(
        refusal(&Number::Large(3))
            .contains("a value of type Number is not read back as it was written")
    );
}

#[test]
fn refused_value_fails_the_job_before_it_is_written() {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct NotWritten {
        #[serde(skip_serializing)]
        lost: u8,
    }
    let input = Dataset::lines(["a", "b"]).expect("a dataset");
    let job = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<String, Serde<NotWritten>>| {
                out.emit(line, NotWritten { lost: 1 })
            })
            .reduce(|key, _, out| out.emit(key, ()))
    };
    let error = napreduce::job(job)
        .inputs([&input])
        .run(&Local::threads())
        .expect_err("it is refused");
    let message = error.to_string();
    assert!(
        message.contains(
            "a value of type NotWritten cannot be read back from what its Serialize writes"
        ),
        "{message}"
    );
    assert!(!message.contains("panicked"), "{message}");
    let error = Dataset::<(u64, Serde<NotWritten>)>::of([(1, NotWritten { lost: 1 })])
        .expect_err("it is refused");
    assert!(
        error
            .to_string()
            .starts_with("a value of type NotWritten cannot be read back"),
        "{error}"
    );
}

#[test]
fn deep_value_is_refused() {
    #[derive(Debug, Clone, Serialize, Deserialize)]
    struct Node {
        next: Option<Box<Node>>,
    }
    let chain = |length: usize| {
        (0..length).fold(Node { next: None }, |next, _| Node {
            next: Some(Box::new(next)),
        })
    };
    assert!(arrived(&chain(100)).is_ok());
    assert!(
        refusal(&chain(1000))
            .contains("Node cannot be written: it has more than 256 levels of values in values")
    );
}

#[test]
fn parameters_of_other_type_are_converted_exactly_or_refused() {
    fn number(number: &f64) -> Job {
        let number = *number;
        Job::text().map_only(move |line: &str, out| out.emit(line, number))
    }
    let input = Dataset::lines(["line"]).expect("a dataset");
    let run = |request: napreduce::run::JobRequest<String>| {
        request.inputs([&input]).run(&Local::threads())
    };
    let arrived = run(napreduce::job(number).parameters(&16_777_217)).expect("an exact number");
    assert_eq!(arrived.collect().expect("lines"), ["line\t16777217.0"]);
    let error = run(napreduce::job(number).parameters(&u64::MAX)).expect_err("it is not exact");
    assert!(
        error
            .to_string()
            .contains("cannot be represented as an f64"),
        "{error}"
    );
}

#[test]
fn skipped_field_leaves_its_neighbours_as_they_are() {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Row {
        #[serde(skip_serializing_if = "Option::is_none")]
        a: Option<u64>,
        b: u64,
        text: String,
    }
    // Without names of fields the length of this text and its first letters are read as numbers and as a length.
    let row = || Row {
        a: None,
        b: 1,
        text: "A ".to_owned() + &"x".repeat(32),
    };
    let job = move || {
        Job::join("left", TextLines, move |line: &str| {
            (line.to_owned(), row())
        })
        .with("right", TextLines, move |line: &str| {
            (line.to_owned(), row())
        })
        .inner(|_, left: &Row, right: &Row, out| out.emit(format!("{left:?}"), right.b))
    };
    let test = JobTest::new(job)
        .input_named("left", "x\n")
        .input_named("right", "x\n");
    assert_eq!(test.run().text(), format!("{:?}\t1\n", row()));
}
