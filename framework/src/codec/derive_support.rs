//! Steps over one field of a composite, for derived code and the built-in composites. Public only for
//! `napreduce-derive`.

pub use super::{DecodeError, Field, GroupBy, Key, KeyAlone, Scratch, Value};

/// Decodes one field of a composite whose encoding had `whole` bytes left when it began.
#[inline]
pub fn decode_field<'a, V: Value>(
    input: &mut &'a [u8],
    whole: usize,
    last: bool,
    scratch: &'a Scratch,
) -> Result<V::Ref<'a>, DecodeError> {
    let before = whole - input.len();
    V::decode(input, last, scratch).map_err(|error| error.after(before))
}

/// Moves `at` past the field of a composite that begins there.
#[inline]
pub fn measure_field<V: Value>(
    bytes: &[u8],
    at: &mut usize,
    last: bool,
    flip: u8,
) -> Result<(), DecodeError> {
    // A measured length never exceeds the measured bytes, so `at` stays in bounds.
    *at += V::measure(&bytes[*at..], last, flip).map_err(|error| error.after(*at))?;
    Ok(())
}

/// Takes the tag byte of an enum.
#[inline]
pub fn take_tag(input: &mut &[u8]) -> Option<u8> {
    let (tag, rest) = input.split_first()?;
    *input = rest;
    Some(*tag)
}

/// Returns the fixed length of several fields together, if each has one.
pub const fn fixed_sum_of(fields: &[Option<usize>]) -> Option<usize> {
    let mut sum = 0;
    let mut next = 0;
    while next < fields.len() {
        match fields[next] {
            Some(length) => sum += length,
            None => return None,
        }
        next += 1;
    }
    Some(sum)
}

/// A struct or variant: its name, and the names and families of its fields, which have no names in a tuple.
type Described = (&'static str, Vec<(&'static str, String)>);

/// Returns the family name of a struct.
pub fn struct_family(name: &str, (_, fields): Described) -> String {
    format!("{name}{}", fields_family(&fields))
}

/// Returns the family name of an enum.
pub fn enum_family(name: &str, variants: Vec<Described>) -> String {
    let variants: Vec<_> = variants
        .iter()
        .map(|(variant, fields)| format!("{variant}{}", fields_family(fields)))
        .collect();
    format!("{name} {{ {} }}", variants.join(", "))
}

fn fields_family(fields: &[(&str, String)]) -> String {
    match fields {
        [] => String::new(),
        [("", _), ..] => {
            let families: Vec<_> = fields.iter().map(|(_, family)| family.as_str()).collect();
            format!("({})", families.join(", "))
        }
        _ => {
            let families: Vec<_> = fields
                .iter()
                .map(|(name, family)| format!("{name}: {family}"))
                .collect();
            format!(" {{ {} }}", families.join(", "))
        }
    }
}
