//! The serializer.

use serde::Serialize;
use serde::ser::{self, Serializer};

use super::error::TaggedError;
use super::tags::{self, push_varint, zigzag};

/// The most levels of values in values. Serde's code calls itself for each, so more would overflow the stack.
pub(super) const LEVELS_MAX: u32 = 256;

/// The most names that one value keeps for references to them.
const NAMES_MAX: usize = 64;

/// Appends values to a buffer.
pub(super) struct Writer<'n> {
    out: Vec<u8>,
    /// Where the value begins.
    start: usize,
    names: &'n mut Names,
    levels: u32,
}

/// The names of fields and variants that were written, with their distances from the start of the value.
#[derive(Default)]
pub(super) struct Names {
    known: Vec<(&'static str, usize)>,
    /// The name that follows the last one, if values repeat: the fields of a struct in a list.
    next: usize,
    /// A bit for each known name, by its length and last byte; a name whose bit is not set is new.
    marks: u64,
}

fn mark(name: &str) -> u64 {
    let last = name.as_bytes().last().copied().unwrap_or(0);
    1 << ((name.len() * 7 + usize::from(last)) % 64)
}

impl Names {
    fn clear(&mut self) {
        self.known.clear();
        self.next = 0;
        self.marks = 0;
    }

    #[inline]
    fn find(&mut self, name: &'static str) -> Option<usize> {
        if self.marks & mark(name) == 0 {
            return None;
        }
        let is_next = |known: &&(&str, usize)| known.0 == name;
        if let Some((_, at)) = self.known.get(self.next).filter(is_next) {
            self.next += 1;
            return Some(*at);
        }
        let found = self.known.iter().position(|(known, _)| *known == name)?;
        self.next = found + 1;
        Some(self.known[found].1)
    }

    #[inline]
    fn add(&mut self, name: &'static str, at: usize) {
        if self.known.len() < NAMES_MAX {
            self.marks |= mark(name);
            self.known.push((name, at));
            self.next = self.known.len();
        }
    }
}

/// Appends the encoding of a value to `out`.
#[inline]
pub(super) fn write<T: Serialize + ?Sized>(
    value: &T,
    out: &mut Vec<u8>,
    names: &mut Names,
) -> Result<(), TaggedError> {
    names.clear();
    let start = out.len();
    let mut writer = Writer {
        out: std::mem::take(out),
        start,
        names,
        levels: 0,
    };
    let written = value.serialize(&mut writer);
    *out = writer.out;
    if written.is_err() {
        out.truncate(start);
    }
    written
}

impl Writer<'_> {
    #[inline]
    fn push_tagged(&mut self, tag: u8, number: u64) {
        self.out.push(tag);
        push_varint(number, &mut self.out);
    }

    #[inline]
    fn push_bytes(&mut self, tag: u8, bytes: &[u8]) {
        self.push_tagged(tag, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    /// Appends a name: an even number and the text, or an odd one for an earlier place of the same text. Zero is the
    /// end of a struct.
    #[inline]
    fn push_name(&mut self, name: &'static str) {
        if let Some(at) = self.names.find(name) {
            push_varint(2 * at as u64 + 1, &mut self.out);
            return;
        }
        self.names.add(name, self.out.len() - self.start);
        push_varint(2 * (name.len() as u64 + 1), &mut self.out);
        self.out.extend_from_slice(name.as_bytes());
    }

    #[inline]
    fn enter(&mut self) -> Result<(), TaggedError> {
        self.levels += 1;
        if self.levels > LEVELS_MAX {
            Err(too_deep())
        } else {
            Ok(())
        }
    }

    #[inline]
    fn nested<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TaggedError> {
        self.enter()?;
        value.serialize(&mut *self)?;
        self.levels -= 1;
        Ok(())
    }
}

#[cold]
fn too_deep() -> TaggedError {
    TaggedError::new(format!(
        "it has more than {LEVELS_MAX} levels of values in values"
    ))
}

/// The items of a sequence, tuple, map, struct or variant.
pub(super) struct Items<'w, 'n>(&'w mut Writer<'n>);

impl<'w, 'n> Items<'w, 'n> {
    #[inline]
    fn new(writer: &'w mut Writer<'n>) -> Result<Items<'w, 'n>, TaggedError> {
        writer.enter()?;
        Ok(Items(writer))
    }

    #[inline]
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TaggedError> {
        value.serialize(&mut *self.0)
    }

    #[inline]
    fn field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), TaggedError> {
        self.0.push_name(name);
        value.serialize(&mut *self.0)
    }

    #[inline]
    fn finish(self) {
        self.0.levels -= 1;
        self.0.out.push(tags::END);
    }
}

impl<'w, 'n> Serializer for &'w mut Writer<'n> {
    type Ok = ();
    type Error = TaggedError;
    type SerializeSeq = Items<'w, 'n>;
    type SerializeTuple = Items<'w, 'n>;
    type SerializeTupleStruct = Items<'w, 'n>;
    type SerializeTupleVariant = Items<'w, 'n>;
    type SerializeMap = Items<'w, 'n>;
    type SerializeStruct = Items<'w, 'n>;
    type SerializeStructVariant = Items<'w, 'n>;

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<(), TaggedError> {
        self.out.push(if value { tags::TRUE } else { tags::FALSE });
        Ok(())
    }

    #[inline]
    fn serialize_u8(self, value: u8) -> Result<(), TaggedError> {
        if value < tags::SMALL_U8 {
            self.out.push(tags::SMALL_U8 | value);
        } else {
            self.out.extend_from_slice(&[tags::U8, value]);
        }
        Ok(())
    }

    #[inline]
    fn serialize_u16(self, value: u16) -> Result<(), TaggedError> {
        self.push_tagged(tags::U16, value.into());
        Ok(())
    }

    #[inline]
    fn serialize_u32(self, value: u32) -> Result<(), TaggedError> {
        self.push_tagged(tags::U32, value.into());
        Ok(())
    }

    #[inline]
    fn serialize_u64(self, value: u64) -> Result<(), TaggedError> {
        self.push_tagged(tags::U64, value);
        Ok(())
    }

    fn serialize_u128(self, value: u128) -> Result<(), TaggedError> {
        self.out.push(tags::U128);
        self.out.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_i8(self, value: i8) -> Result<(), TaggedError> {
        self.out.extend_from_slice(&[tags::I8, value as u8]);
        Ok(())
    }

    #[inline]
    fn serialize_i16(self, value: i16) -> Result<(), TaggedError> {
        self.push_tagged(tags::I16, zigzag(value.into()));
        Ok(())
    }

    #[inline]
    fn serialize_i32(self, value: i32) -> Result<(), TaggedError> {
        self.push_tagged(tags::I32, zigzag(value.into()));
        Ok(())
    }

    #[inline]
    fn serialize_i64(self, value: i64) -> Result<(), TaggedError> {
        self.push_tagged(tags::I64, zigzag(value));
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Result<(), TaggedError> {
        self.out.push(tags::I128);
        self.out.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_f32(self, value: f32) -> Result<(), TaggedError> {
        self.out.push(tags::F32);
        self.out.extend_from_slice(&value.to_bits().to_le_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_f64(self, value: f64) -> Result<(), TaggedError> {
        self.out.push(tags::F64);
        self.out.extend_from_slice(&value.to_bits().to_le_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_char(self, value: char) -> Result<(), TaggedError> {
        self.push_tagged(tags::CHAR, u32::from(value).into());
        Ok(())
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), TaggedError> {
        self.push_bytes(tags::STR, value.as_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_bytes(self, value: &[u8]) -> Result<(), TaggedError> {
        self.push_bytes(tags::BYTES, value);
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> Result<(), TaggedError> {
        self.out.push(tags::NONE);
        Ok(())
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), TaggedError> {
        self.out.push(tags::SOME);
        self.nested(value)
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), TaggedError> {
        self.out.push(tags::UNIT);
        Ok(())
    }

    #[inline]
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), TaggedError> {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), TaggedError> {
        self.out.push(tags::UNIT_VARIANT);
        self.push_name(variant);
        Ok(())
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), TaggedError> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), TaggedError> {
        self.out.push(tags::VARIANT);
        self.push_name(variant);
        self.nested(value)
    }

    #[inline]
    fn serialize_seq(self, length: Option<usize>) -> Result<Items<'w, 'n>, TaggedError> {
        self.push_tagged(tags::SEQ, length.unwrap_or(0) as u64);
        Items::new(self)
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<Items<'w, 'n>, TaggedError> {
        self.out.push(tags::TUPLE);
        Items::new(self)
    }

    #[inline]
    fn serialize_tuple_struct(
        self,
        _: &'static str,
        length: usize,
    ) -> Result<Items<'w, 'n>, TaggedError> {
        self.serialize_tuple(length)
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Items<'w, 'n>, TaggedError> {
        self.out.push(tags::VARIANT);
        self.push_name(variant);
        self.serialize_tuple(length)
    }

    #[inline]
    fn serialize_map(self, length: Option<usize>) -> Result<Items<'w, 'n>, TaggedError> {
        self.push_tagged(tags::MAP, length.unwrap_or(0) as u64);
        Items::new(self)
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Items<'w, 'n>, TaggedError> {
        self.out.push(tags::STRUCT);
        Items::new(self)
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Items<'w, 'n>, TaggedError> {
        self.out.push(tags::VARIANT);
        self.push_name(variant);
        self.serialize_struct(name, length)
    }
}

impl ser::SerializeSeq for Items<'_, '_> {
    type Ok = ();
    type Error = TaggedError;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TaggedError> {
        self.item(value)
    }

    #[inline]
    fn end(self) -> Result<(), TaggedError> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeTuple for Items<'_, '_> {
    type Ok = ();
    type Error = TaggedError;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TaggedError> {
        self.item(value)
    }

    #[inline]
    fn end(self) -> Result<(), TaggedError> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeTupleStruct for Items<'_, '_> {
    type Ok = ();
    type Error = TaggedError;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TaggedError> {
        self.item(value)
    }

    #[inline]
    fn end(self) -> Result<(), TaggedError> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeTupleVariant for Items<'_, '_> {
    type Ok = ();
    type Error = TaggedError;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TaggedError> {
        self.item(value)
    }

    #[inline]
    fn end(self) -> Result<(), TaggedError> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeMap for Items<'_, '_> {
    type Ok = ();
    type Error = TaggedError;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), TaggedError> {
        self.item(key)
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TaggedError> {
        self.item(value)
    }

    #[inline]
    fn end(self) -> Result<(), TaggedError> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeStruct for Items<'_, '_> {
    type Ok = ();
    type Error = TaggedError;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), TaggedError> {
        self.field(name, value)
    }

    #[inline]
    fn end(self) -> Result<(), TaggedError> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeStructVariant for Items<'_, '_> {
    type Ok = ();
    type Error = TaggedError;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), TaggedError> {
        self.field(name, value)
    }

    #[inline]
    fn end(self) -> Result<(), TaggedError> {
        self.finish();
        Ok(())
    }
}
