//! Deserialization of one csv record.
//!
//! The csv crate does the same, but treats digits as a number whenever serde accepts any value. Serde does so
//! for every field behind `#[serde(flatten)]`, whatever its type.

use std::collections::HashSet;
use std::fmt::{self, Display};
use std::str;

use csv::ByteRecord;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// The columns of a file with a header.
pub(super) struct Columns {
    pub(super) names: ByteRecord,
    /// The first name that two columns have.
    pub(super) repeated: Option<String>,
}

impl Columns {
    pub(super) fn new(names: ByteRecord) -> Columns {
        let mut known = HashSet::new();
        let repeated = names.iter().find(|name| !known.insert(*name));
        let repeated = repeated.map(|name| String::from_utf8_lossy(name).into_owned());
        Columns { names, repeated }
    }
}

/// Deserializes a record; the error is the reason.
pub(super) fn deserialize<'de, R: Deserialize<'de>>(
    record: &'de ByteRecord,
    columns: Option<&'de Columns>,
) -> Result<R, String> {
    let mut fields = Fields::of(record, columns, AnyValue::Guess);
    let row = match deserialize_all(&mut fields) {
        Err(error) if fields.has_any => deserialize_as_text(record, columns, error),
        row => row,
    };
    let names = columns.map(|columns| &columns.names);
    row.map_err(|error| match error.column.and_then(|at| names?.get(at)) {
        Some(name) => format!(
            "column {}: {}",
            String::from_utf8_lossy(name),
            error.message
        ),
        None => error.message,
    })
}

/// Deserializes a record whose fields must all be part of the row.
fn deserialize_all<'de, R: Deserialize<'de>>(fields: &mut Fields<'_, 'de>) -> Result<R, RowError> {
    let row = R::deserialize(&mut *fields)?;
    let count = fields.record.len();
    if fields.at < count {
        let message = format!(
            "it has {count} fields, but the type of the row has {}",
            fields.at
        );
        return Err(RowError::custom(message));
    }
    Ok(row)
}

/// Deserializes after a wrong guess: untyped fields are text, except those whose type rejects text.
fn deserialize_as_text<'de, R: Deserialize<'de>>(
    record: &'de ByteRecord,
    columns: Option<&'de Columns>,
    mut error: RowError,
) -> Result<R, RowError> {
    let names = columns.map(|columns| &columns.names);
    let mut not_text = Vec::new();
    loop {
        let any = AnyValue::Text { except: &not_text };
        let next = match deserialize_all(&mut Fields::of(record, columns, any)) {
            Ok(row) => return Ok(row),
            Err(next) => next,
        };
        let is_refused = |at: &usize| next.refused == Some(place(field_at(record, names, *at)));
        let column = (0..record.len()).find(|at| is_refused(at) && !not_text.contains(at));
        // Otherwise the earlier error is more specific.
        if column.is_some() || next.column.is_some() || not_text.is_empty() {
            error = RowError {
                column: column.or(next.column),
                ..next
            };
        }
        match column {
            Some(column) => not_text.push(column),
            None => return Err(error),
        }
    }
}

/// Returns the field in column `at`. Empty fields of different columns have different addresses, too.
fn field_at<'de>(record: &'de ByteRecord, names: Option<&'de ByteRecord>, at: usize) -> &'de [u8] {
    match (record.get(at), names.map(ByteRecord::as_slice)) {
        (Some([]), Some(names)) => &names[at.min(names.len())..][..0],
        (field, _) => field.unwrap_or_default(),
    }
}

/// Returns the address of a field, which identifies a text in serde's errors.
fn place(field: &[u8]) -> (*const u8, usize) {
    (field.as_ptr(), field.len())
}

/// The type of an untyped field.
#[derive(Clone, Copy)]
enum AnyValue<'e> {
    /// A number if it prints like the field, otherwise a text.
    Guess,
    /// A text, except in these columns.
    Text { except: &'e [usize] },
}

/// The remaining fields of a record.
struct Fields<'e, 'de> {
    record: &'de ByteRecord,
    names: Option<&'de ByteRecord>,
    /// The first name that two columns have.
    repeated: Option<&'de str>,
    at: usize,
    /// Whether this is a value of the row instead of the row.
    is_inside: bool,
    any: AnyValue<'e>,
    /// Whether an untyped field was read.
    has_any: bool,
}

impl<'e, 'de> Fields<'e, 'de> {
    fn of(record: &'de ByteRecord, columns: Option<&'de Columns>, any: AnyValue<'e>) -> Self {
        Fields {
            record,
            names: columns.map(|columns| &columns.names),
            repeated: columns.and_then(|columns| columns.repeated.as_deref()),
            at: 0,
            is_inside: false,
            any,
            has_any: false,
        }
    }

    fn next(&mut self) -> Result<&'de [u8], RowError> {
        if self.at >= self.record.len() {
            return Err(RowError::custom("expected field, but got end of row"));
        }
        self.at += 1;
        Ok(field_at(self.record, self.names, self.at - 1))
    }

    fn next_text(&mut self) -> Result<&'de str, RowError> {
        str::from_utf8(self.next()?).map_err(RowError::custom)
    }

    /// Deserializes a value, which takes at least one field.
    fn value<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, RowError> {
        let start = self.at;
        self.is_inside = true;
        let value = seed.deserialize(&mut *self);
        self.at = self.at.max(start + 1);
        value.map_err(|error| RowError {
            column: error.column.or(Some(start)),
            ..error
        })
    }

    /// Skips all fields if this is the row.
    fn skip(&mut self) {
        if !self.is_inside {
            self.at = self.record.len();
        }
    }

    /// Deserializes all fields by name, or in order if there are no names.
    fn named<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, RowError> {
        match (self.names, self.is_inside) {
            (None, _) => visitor.visit_seq(self),
            (Some(_), false) if self.repeated.is_some() => {
                let name = self.repeated.unwrap_or_default();
                Err(RowError::custom(format_args!(
                    "the header has the column {name} twice"
                )))
            }
            (Some(_), false) => visitor.visit_map(self),
            (Some(_), true) => Err(RowError::custom(
                "a field is a single value; use #[serde(flatten)] for a struct in a row",
            )),
        }
    }
}

/// Returns a number that prints like the text, or a Boolean.
fn guess(text: &str) -> Scalar {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [b'0', b'0'..=b'9', ..] | [b'+', ..] => Scalar::Text,
        b"0" if text.len() > 1 => Scalar::Text,
        [b'0'..=b'9' | b'.', ..] => match typed(text) {
            // Excludes integers over 64 bits.
            Scalar::Float(float) if !float.is_finite() || !text.contains(['.', 'e', 'E']) => {
                Scalar::Text
            }
            number => number,
        },
        b"true" | b"false" => typed(text),
        _ => Scalar::Text,
    }
}

/// Converts a text for a type that rejects text.
fn typed(text: &str) -> Scalar {
    let unsigned = || text.parse().map(Scalar::Unsigned).ok();
    let signed = || {
        text.parse()
            .map(Scalar::Signed)
            .ok()
            .filter(|_| text != "-0")
    };
    let float = || text.parse().map(Scalar::Float).ok();
    match text {
        "" => Scalar::Nothing,
        "true" => Scalar::Bool(true),
        "false" => Scalar::Bool(false),
        _ => unsigned()
            .or_else(signed)
            .or_else(float)
            .unwrap_or(Scalar::Text),
    }
}

enum Scalar {
    Nothing,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text,
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
            let number = self.next_text()?.parse::<$type>();
            visitor.$visit(number.map_err(RowError::custom)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Fields<'_, 'de> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        if !self.is_inside {
            return self.named(visitor);
        }
        self.has_any = true;
        let column = self.at;
        let field = self.next()?;
        let Ok(text) = str::from_utf8(field) else {
            return visitor.visit_borrowed_bytes(field);
        };
        let scalar = match self.any {
            AnyValue::Guess => guess(text),
            AnyValue::Text { except } if except.contains(&column) => typed(text),
            AnyValue::Text { .. } => Scalar::Text,
        };
        match scalar {
            Scalar::Nothing => visitor.visit_none(),
            Scalar::Bool(value) => visitor.visit_bool(value),
            Scalar::Unsigned(number) => visitor.visit_u64(number),
            Scalar::Signed(number) => visitor.visit_i64(number),
            Scalar::Float(number) => visitor.visit_f64(number),
            Scalar::Text => visitor.visit_borrowed_str(text),
        }
    }

    integers! {
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_u128 visit_u128 u128,
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
        deserialize_i128 visit_i128 i128,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_bool(self.next_text()?.parse().map_err(RowError::custom)?)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_f32(self.next_text()?.parse().map_err(RowError::custom)?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_f64(self.next_text()?.parse().map_err(RowError::custom)?)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_str(self.next_text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_bytes(self.next()?)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.record.get(self.at) {
            Some([]) => {
                self.at += 1;
                visitor.visit_none()
            }
            Some(_) => visitor.visit_some(self),
            None => visitor.visit_none(),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.skip();
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        self.skip();
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_seq(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_seq(self)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_seq(self)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.named(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        self.named(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_enum(self)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        if self.is_inside {
            self.next()?;
        }
        self.skip();
        visitor.visit_unit()
    }
}

impl<'de> SeqAccess<'de> for &mut Fields<'_, 'de> {
    type Error = RowError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, RowError> {
        if self.at < self.record.len() {
            self.value(seed).map(Some)
        } else {
            Ok(None)
        }
    }
}

impl<'de> MapAccess<'de> for &mut Fields<'_, 'de> {
    type Error = RowError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, RowError> {
        match self.names.and_then(|names| names.get(self.at)) {
            Some(name) => seed.deserialize(Name(name)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, RowError> {
        self.value(seed)
    }
}

impl<'de> EnumAccess<'de> for &mut Fields<'_, 'de> {
    type Error = RowError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), RowError> {
        let name = self.next_text()?;
        Ok((seed.deserialize(name.into_deserializer())?, self))
    }
}

impl<'de> VariantAccess<'de> for &mut Fields<'_, 'de> {
    type Error = RowError;

    fn unit_variant(self) -> Result<(), RowError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, RowError> {
        Err(RowError::invalid_type(
            Unexpected::UnitVariant,
            &"newtype variant",
        ))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, RowError> {
        Err(RowError::invalid_type(
            Unexpected::UnitVariant,
            &"tuple variant",
        ))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, RowError> {
        Err(RowError::invalid_type(
            Unexpected::UnitVariant,
            &"struct variant",
        ))
    }
}

/// The name of a column. Names of struct fields are compared as bytes.
struct Name<'de>(&'de [u8]);

impl<'de> Deserializer<'de> for Name<'de> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match str::from_utf8(self.0) {
            Ok(name) => visitor.visit_borrowed_str(name),
            Err(_) => visitor.visit_borrowed_bytes(self.0),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_bytes(self.0)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum ignored_any
    }
}

/// The error for a record that is not a row.
#[derive(Debug)]
struct RowError {
    message: String,
    column: Option<usize>,
    /// The address of a text of the wrong type.
    refused: Option<(*const u8, usize)>,
}

impl Error for RowError {
    fn custom<T: Display>(message: T) -> RowError {
        RowError {
            message: message.to_string(),
            column: None,
            refused: None,
        }
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> RowError {
        let refused = match unexpected {
            Unexpected::Str(text) => Some(place(text.as_bytes())),
            _ => None,
        };
        RowError {
            refused,
            ..RowError::custom(format!("invalid type: {unexpected}, expected {expected}"))
        }
    }
}

impl Display for RowError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for RowError {}
