//! A serde deserializer of Avro's binary encoding. Texts and bytes are borrowed, and memory for hostile bytes
//! is limited.

use serde::de::value::{Error, SeqDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IgnoredAny, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::schema::{Kind, Schema};

/// Maximum nesting of values: a schema may refer to itself.
const DEPTH_MAX: usize = 128;

#[cold]
fn cut_off() -> Error {
    Error::custom("its bytes end early")
}

#[cold]
fn too_many_empty() -> Error {
    Error::custom("its zero-size values exceed the memory of the task; raise --task-memory")
}

/// Takes an integer: zigzag, seven bits per byte.
pub(super) fn take_long(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    None
}

fn take<'de>(bytes: &mut &'de [u8], count: usize) -> Result<&'de [u8], Error> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or_else(cut_off)?;
    *bytes = rest;
    Ok(taken)
}

fn take_array<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Error> {
    let (taken, rest) = bytes.split_first_chunk().ok_or_else(cut_off)?;
    *bytes = rest;
    Ok(*taken)
}

/// Takes bytes with a length prefix.
pub(super) fn take_counted<'de>(bytes: &mut &'de [u8]) -> Result<&'de [u8], Error> {
    let length = take_long(bytes).ok_or_else(cut_off)?;
    take(
        bytes,
        usize::try_from(length)
            .map_err(|_| Error::custom(format_args!("invalid length {length}")))?,
    )
}

fn take_text<'de>(bytes: &mut &'de [u8]) -> Result<&'de str, Error> {
    std::str::from_utf8(take_counted(bytes)?).map_err(|_| Error::custom("a text is not UTF-8"))
}

/// One value at the front of the bytes.
pub(super) struct Datum<'a, 'de> {
    schema: &'a Schema,
    kind: usize,
    bytes: &'a mut &'de [u8],
    depth: usize,
    /// Remaining zero-size values; the length of the data limits all others.
    empty_left: &'a mut u64,
}

impl<'a, 'de> Datum<'a, 'de> {
    pub(super) fn new(
        schema: &'a Schema,
        bytes: &'a mut &'de [u8],
        empty_left: &'a mut u64,
    ) -> Self {
        Datum {
            schema,
            kind: schema.root,
            bytes,
            depth: 0,
            empty_left,
        }
    }

    fn inner(&mut self, kind: usize) -> Result<Datum<'_, 'de>, Error> {
        if self.depth >= DEPTH_MAX {
            return Err(Error::custom("its values are nested too deeply"));
        }
        if self.schema.may_be_empty(kind) {
            *self.empty_left = self.empty_left.checked_sub(1).ok_or_else(too_many_empty)?;
        }
        let bytes = &mut *self.bytes;
        let depth = self.depth + 1;
        Ok(Datum {
            schema: self.schema,
            kind,
            bytes,
            depth,
            empty_left: self.empty_left,
        })
    }

    fn kind(&self) -> &'a Kind {
        self.schema.kind(self.kind)
    }

    /// Resolves the union branch of the value.
    fn resolve(mut self) -> Result<Self, Error> {
        while let Kind::Union(branches) = self.kind() {
            let branch = take_long(self.bytes).ok_or_else(cut_off)?;
            let kind = usize::try_from(branch)
                .ok()
                .and_then(|branch| branches.get(branch));
            self.kind = *kind
                .ok_or_else(|| Error::custom(format_args!("its union has no branch {branch}")))?;
            self.depth += 1;
            if self.depth >= DEPTH_MAX {
                return Err(Error::custom("its values are nested too deeply"));
            }
        }
        Ok(self)
    }

    fn symbol(&mut self, symbols: &'a [String]) -> Result<&'a str, Error> {
        let number = take_long(self.bytes).ok_or_else(cut_off)?;
        let symbol = usize::try_from(number)
            .ok()
            .and_then(|number| symbols.get(number));
        symbol
            .map(String::as_str)
            .ok_or_else(|| Error::custom(format_args!("its enum has no symbol {number}")))
    }
}

impl<'de> Deserializer<'de> for Datum<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut datum = self.resolve()?;
        match datum.kind() {
            Kind::Null => visitor.visit_unit(),
            Kind::Boolean => match take_array(datum.bytes)? {
                [0] => visitor.visit_bool(false),
                [1] => visitor.visit_bool(true),
                [byte] => Err(Error::custom(format_args!("invalid boolean {byte}"))),
            },
            Kind::Int | Kind::Long => {
                visitor.visit_i64(take_long(datum.bytes).ok_or_else(cut_off)?)
            }
            Kind::Float => visitor.visit_f32(f32::from_le_bytes(take_array(datum.bytes)?)),
            Kind::Double => visitor.visit_f64(f64::from_le_bytes(take_array(datum.bytes)?)),
            Kind::Bytes => visitor.visit_borrowed_bytes(take_counted(datum.bytes)?),
            Kind::String => visitor.visit_borrowed_str(take_text(datum.bytes)?),
            Kind::Fixed(size) => visitor.visit_borrowed_bytes(take(datum.bytes, *size)?),
            Kind::Enum(symbols) => visitor.visit_str(datum.symbol(symbols)?),
            Kind::Record(fields) => visitor.visit_map(Fields {
                datum,
                fields,
                next: 0,
            }),
            Kind::Array(item) => {
                let takes_bytes = !datum.schema.may_be_empty(*item);
                all(
                    visitor,
                    Blocks {
                        datum,
                        item: *item,
                        takes_bytes,
                        left: 0,
                        ended: false,
                    },
                )
            }
            Kind::Map(value) => visitor.visit_map(Blocks {
                datum,
                item: *value,
                takes_bytes: true,
                left: 0,
                ended: false,
            }),
            Kind::Union(_) => Err(Error::custom("a union contains a union")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let datum = self.resolve()?;
        match datum.kind() {
            Kind::Null => visitor.visit_none(),
            _ => visitor.visit_some(datum),
        }
    }

    /// A record is also a list of its fields, and bytes are a list of numbers.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let datum = self.resolve()?;
        match datum.kind() {
            Kind::Record(fields) => all(
                visitor,
                Fields {
                    datum,
                    fields,
                    next: 0,
                },
            ),
            Kind::Bytes => visitor.visit_seq(SeqDeserializer::new(
                take_counted(datum.bytes)?.iter().copied(),
            )),
            Kind::Fixed(size) => visitor.visit_seq(SeqDeserializer::new(
                take(datum.bytes, *size)?.iter().copied(),
            )),
            _ => datum.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// A symbol or a text is a variant without data.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut datum = self.resolve()?;
        let variant = match datum.kind() {
            Kind::Enum(symbols) => datum.symbol(symbols)?,
            Kind::String => take_text(datum.bytes)?,
            other => {
                return Err(Error::custom(format_args!(
                    "a value of {other:?} is not an enum"
                )));
            }
        };
        visitor.visit_enum(Variant(variant))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct map struct
        identifier ignored_any
    }
}

/// Passes a list to a visitor and skips the items that it leaves.
fn all<'de, V: Visitor<'de>, S: SeqAccess<'de, Error = Error>>(
    visitor: V,
    mut items: S,
) -> Result<V::Value, Error> {
    let value = visitor.visit_seq(&mut items)?;
    while items.next_element::<IgnoredAny>()?.is_some() {}
    Ok(value)
}

struct Variant<'v>(&'v str);

impl<'de, 'v> EnumAccess<'de> for Variant<'v> {
    type Error = Error;
    type Variant = <StrDeserializer<'v, Error> as EnumAccess<'de>>::Variant;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), Error> {
        let name: StrDeserializer<'v, Error> = self.0.into_deserializer();
        name.variant_seed(seed)
    }
}

/// The fields of a record in schema order.
struct Fields<'a, 'de> {
    datum: Datum<'a, 'de>,
    fields: &'a [(String, usize)],
    next: usize,
}

impl<'de> MapAccess<'de> for Fields<'_, 'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some((name, _)) = self.fields.get(self.next) else {
            return Ok(None);
        };
        let name: StrDeserializer<'_, Error> = name.as_str().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let field = self.fields.get(self.next).map(|(name, kind)| (name, *kind));
        let (name, kind) = field.ok_or_else(|| Error::custom("the record has no more fields"))?;
        self.next += 1;
        let value = seed.deserialize(self.datum.inner(kind)?);
        value.map_err(|error| Error::custom(format_args!("field {name}: {error}")))
    }
}

impl<'de> SeqAccess<'de> for Fields<'_, 'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        if self.next == self.fields.len() {
            Ok(None)
        } else {
            self.next_value_seed(seed).map(Some)
        }
    }
}

/// The items of an array or a map, in counted blocks that end with an empty one.
struct Blocks<'a, 'de> {
    datum: Datum<'a, 'de>,
    item: usize,
    /// Whether each item has at least one byte; items of a map have keys.
    takes_bytes: bool,
    left: u64,
    ended: bool,
}

impl Blocks<'_, '_> {
    /// Returns whether there is another item.
    fn advance(&mut self) -> Result<bool, Error> {
        if self.left == 0 && !self.ended {
            let count = take_long(self.datum.bytes).ok_or_else(cut_off)?;
            if count < 0 {
                // A negative count is followed by the length of the block in bytes.
                take_long(self.datum.bytes).ok_or_else(cut_off)?;
            }
            self.left = count.unsigned_abs();
            self.ended = count == 0;
            if self.takes_bytes && self.left > self.datum.bytes.len() as u64 {
                let held = self.datum.bytes.len();
                return Err(Error::custom(format_args!(
                    "{} items in {held} bytes",
                    self.left
                )));
            }
        }
        if self.ended {
            return Ok(false);
        }
        self.left -= 1;
        Ok(true)
    }
}

impl<'de> SeqAccess<'de> for Blocks<'_, 'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        if !self.advance()? {
            return Ok(None);
        }
        seed.deserialize(self.datum.inner(self.item)?).map(Some)
    }
}

impl<'de> MapAccess<'de> for Blocks<'_, 'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        if !self.advance()? {
            return Ok(None);
        }
        let key = take_text(self.datum.bytes)?;
        seed.deserialize(serde::de::value::BorrowedStrDeserializer::new(key))
            .map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.datum.inner(self.item)?)
    }
}
