//! Tests of the error messages for types that cannot be derived.

use syn::parse_str;

use crate::expand::{Promise, expand};
use crate::resumable;

fn refusal(item: &str) -> String {
    let input = parse_str(item).expect("the item is Rust");
    expand(&input, Promise::Key)
        .expect_err("the item cannot be derived")
        .to_string()
}

#[test]
fn generic_types_are_rejected() {
    let message =
        "generic keys and values cannot be derived; derive for a concrete type, or use a tuple";
    assert_eq!(refusal("struct Pair<T>(T, T);"), message);
    assert_eq!(refusal("struct Block<const N: usize>([u8; N]);"), message);
}

#[test]
fn two_lifetimes_are_rejected() {
    assert_eq!(
        refusal("struct Pair<'a, 'b>(&'a str, &'b str);"),
        "keys and values can have one lifetime; use the same one for all fields"
    );
}

#[test]
fn unions_and_empty_enums_are_rejected() {
    assert_eq!(
        refusal("union Bits { float: f32, int: u32 }"),
        "a union cannot be decoded; use a struct or an enum"
    );
    assert_eq!(
        refusal("enum Never {}"),
        "an enum without variants has no values"
    );
}

#[test]
fn explicit_discriminants_are_rejected() {
    assert_eq!(
        refusal("enum Level { High = 2, Low = 1 }"),
        "variants sort in declaration order; remove the discriminant"
    );
}

#[test]
fn more_than_256_variants_are_rejected() {
    let variants = |count: usize| {
        (0..count)
            .map(|number| format!("V{number},"))
            .collect::<String>()
    };
    let allowed =
        parse_str(&format!("enum Many {{ {} }}", variants(256))).expect("the item is Rust");
    assert!(expand(&allowed, Promise::Key).is_ok());
    assert_eq!(
        refusal(&format!("enum Many {{ {} }}", variants(257))),
        "257 variants do not fit in the tag byte (limit 256)"
    );
}

#[test]
fn owned_text_fields_are_rejected() {
    assert_eq!(
        refusal("struct Page { name: Option<String> }"),
        "a field of type String would be copied each time it is read; write `&'a str` and give the type a lifetime, or \
         make the whole type a value with `Serde<..>`"
    );
    let message = refusal("struct Page<'p> { name: &'p str, body: Vec<u8> }");
    assert!(
        message.contains("a field of type Vec") && message.contains("write `&'p [u8]`"),
        "{message}"
    );
}

#[test]
fn unsuitable_states_are_rejected() {
    let refusal = |item: &str| {
        let input = parse_str(item).expect("the item is Rust");
        resumable::expand(&input)
            .expect_err("the item cannot be derived")
            .to_string()
    };
    let message =
        "Resumable is derived for structs; make the state a struct with this type as a field";
    assert_eq!(refusal("enum Phase { Before, After }"), message);
    assert_eq!(refusal("union Bits { float: f32, int: u32 }"), message);
    assert_eq!(
        refusal("#[resumable(skip)] struct Total(u64);"),
        "expected `version = NUMBER`; `skip` belongs to a field"
    );
    assert_eq!(
        refusal("struct Total(#[resumable(version = 2)] u64);"),
        "expected `skip`; `version = NUMBER` belongs to the struct"
    );
}
