//! Derived keys and values: order, round trip, grouping and the owned form.

use std::cmp::Reverse;

use napreduce::codec::{GroupBy, Scratch};
use napreduce::{Key, Value};
use proptest::prelude::*;

#[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Visit<'a> {
    user: &'a str,
    time: u64,
    page: Option<&'a [u8]>,
}

#[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point(i32, Reverse<i16>);

#[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Marker;

#[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Outer<'text> {
    first: Visit<'text>,
    // Names that the derived code also uses.
    last: (&'text str, Point),
    out: [u8; 2],
    value: Marker,
    r#type: bool,
}

#[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event<'a> {
    Nothing,
    Moved(Point),
    Said { who: &'a str, what: &'a str },
    Empty(),
}

#[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Low,
    Middle,
    High,
}

#[derive(Value, Clone, Debug, PartialEq)]
enum Measure {
    Absent,
    Of(f64),
}

fn check<'k, K: Key>(left: K::Ref<'k>, right: K::Ref<'k>)
where
    K::Ref<'k>: Copy + Ord + std::fmt::Debug,
{
    for last in [true, false] {
        let mut left_bytes = Vec::new();
        let mut right_bytes = Vec::new();
        K::encode(left, last, &mut left_bytes);
        K::encode(right, last, &mut right_bytes);
        assert_eq!(
            left_bytes.cmp(&right_bytes),
            left.cmp(&right),
            "{left:?} and {right:?}, last: {last}"
        );
        check_again::<K>(&left_bytes, last);
    }
}

fn check_again<K: Key>(bytes: &[u8], last: bool) {
    assert_eq!(K::skip(bytes, last), Ok(bytes.len()));
    let scratch = Scratch::new();
    let mut rest = bytes;
    let decoded = K::decode(&mut rest, last, &scratch).expect("it was encoded");
    assert_eq!(rest, b"");

    let mut again = Vec::new();
    K::encode_owned(&K::to_owned(decoded), last, &mut again);
    assert_eq!(again, bytes);
    for cut in 0..bytes.len() {
        let decoded = K::decode(&mut &bytes[..cut], last, &scratch);
        assert!(
            last || decoded.is_err(),
            "{bytes:?} has an end after {cut} bytes already"
        );
    }
}

fn text() -> impl Strategy<Value = String> {
    "[\u{0}ab]{0,3}"
}

fn parts() -> impl Strategy<Value = (String, u64, Option<String>, i32, i16)> {
    (
        text(),
        0..4u64,
        prop::option::of(text()),
        -2..2i32,
        -2..2i16,
    )
}

type Parts = (String, u64, Option<String>, i32, i16);

fn visit((user, time, page, ..): &Parts) -> Visit<'_> {
    Visit {
        user,
        time: *time,
        page: page.as_ref().map(|page| page.as_bytes()),
    }
}

fn point((.., across, up): &Parts) -> Point {
    Point(*across, Reverse(*up))
}

fn outer(parts: &Parts) -> Outer<'_> {
    Outer {
        first: visit(parts),
        last: (&parts.0, point(parts)),
        out: [parts.1 as u8, 0],
        value: Marker,
        r#type: parts.1 == 1,
    }
}

fn event(parts: &Parts) -> Event<'_> {
    match parts.1 {
        0 => Event::Nothing,
        1 => Event::Moved(point(parts)),
        2 => Event::Said {
            who: &parts.0,
            what: parts.2.as_deref().unwrap_or(""),
        },
        _ => Event::Empty(),
    }
}

proptest! {
    #[test]
    fn derived_keys_keep_the_derived_order(left in parts(), right in parts()) {
        check::<Visit<'static>>(visit(&left), visit(&right));
        check::<Point>(point(&left), point(&right));
        check::<Outer<'static>>(outer(&left), outer(&right));
        check::<Event<'static>>(event(&left), event(&right));
        check::<(Event<'static>, String)>((event(&left), &right.0), (event(&right), &left.0));
    }

    #[test]
    fn derived_types_reject_foreign_bytes(bytes in prop::collection::vec(0..4u8, 0..40)) {
        let scratch = Scratch::new();
        for last in [true, false] {
            let _ = Outer::decode(&mut bytes.as_slice(), last, &scratch);
            let _ = Event::decode(&mut bytes.as_slice(), last, &scratch);
            let _ = Outer::skip(&bytes, last);
            let _ = Event::skip(&bytes, last);
        }
    }
}

#[test]
fn variants_sort_in_declaration_order() {
    for (left, right) in [
        (Level::Low, Level::Middle),
        (Level::Middle, Level::High),
        (Level::High, Level::Low),
    ] {
        check::<Level>(left, right);
    }
    assert_eq!((Level::FIXED, Event::FIXED), (Some(1), None));
}

#[test]
fn fixed_lengths_add_up() {
    assert_eq!(
        (Point::FIXED, Marker::FIXED, Visit::FIXED),
        (Some(6), Some(0), None)
    );
}

#[test]
fn unknown_tag_is_rejected() {
    let error = Event::decode_owned(&[4])
        .err()
        .expect("there are four variants");
    assert_eq!(
        error.to_string(),
        "expected the tag of Event (0 to 3) at byte 0 of the encoding"
    );
}

#[test]
fn combiner_accesses_fields_of_owned_form() {
    let mut kept = <Visit<'static> as Value>::to_owned(Visit {
        user: "ann",
        time: 3,
        page: None,
    });
    let more = <Visit<'static> as Value>::to_owned(Visit {
        user: "bob",
        time: 5,
        page: Some(b"p"),
    });
    if more.time > kept.time {
        kept = more;
    }
    assert_eq!(
        (kept.user, kept.time, kept.page),
        ("bob".to_owned(), 5, Some(b"p".to_vec()))
    );
}

#[test]
fn derived_struct_groups_by_first_fields() {
    let mut key = Vec::new();
    Visit::encode(
        Visit {
            user: "ann",
            time: 3,
            page: Some(b"p"),
        },
        true,
        &mut key,
    );
    let scratch = Scratch::new();

    let prefix = &key[..<Visit<'static> as GroupBy<&'static str>>::prefix_length(&key)];
    assert_eq!(
        <Visit<'static> as GroupBy<&'static str>>::decode_group(prefix, &scratch),
        Ok("ann")
    );
    let prefix = &key[..<Visit<'static> as GroupBy<(&'static str, u64)>>::prefix_length(&key)];
    assert_eq!(
        <Visit<'static> as GroupBy<(&'static str, u64)>>::decode_group(prefix, &scratch),
        Ok(("ann", 3))
    );
}

#[test]
fn derived_value_round_trips() {
    for value in [Measure::Absent, Measure::Of(0.5)] {
        let mut bytes = Vec::new();
        Measure::encode(value.clone(), true, &mut bytes);
        assert_eq!(Measure::decode_owned(&bytes), Ok(value));
    }
}

#[derive(Value)]
struct Page<'a> {
    title: &'a str,
    links: Option<&'a [u8]>,
    rank: f64,
}

#[test]
fn heap_memory_of_derived_types_is_that_of_their_fields() {
    let mut bytes = Vec::new();
    let text = "t".repeat(1000);
    Page::encode(
        Page {
            title: &text,
            links: Some(&[7; 500]),
            rank: 0.5,
        },
        true,
        &mut bytes,
    );
    let page = Page::decode_owned(&bytes).expect("it decodes");
    assert!(
        (1500..2000).contains(&Page::heap_bytes(&page)),
        "{}",
        Page::heap_bytes(&page)
    );
    bytes.clear();
    Event::encode(
        Event::Said {
            who: &text,
            what: &text,
        },
        true,
        &mut bytes,
    );
    let said = Event::decode_owned(&bytes).expect("it decodes");
    assert!((2000..2500).contains(&Event::heap_bytes(&said)));
    assert_eq!(Point::heap_bytes(&Point(1, Reverse(2))), 0);
}
