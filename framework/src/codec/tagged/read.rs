//! The deserializer.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, Error, IntoDeserializer, Unexpected, Visitor,
};

use super::error::TaggedError;
use super::tags::{self, unzigzag};

/// Reads values from the front of an encoding.
#[derive(Clone)]
pub(super) struct Reader<'de> {
    /// The whole value, in which references to names are distances.
    bytes: &'de [u8],
    at: usize,
}

type Read<T> = Result<T, TaggedError>;

impl<'de> Reader<'de> {
    #[inline]
    pub(super) fn new(bytes: &'de [u8]) -> Reader<'de> {
        Reader { bytes, at: 0 }
    }

    /// Returns the bytes after what was read.
    pub(super) fn rest(&self) -> &'de [u8] {
        &self.bytes[self.at..]
    }

    #[inline]
    fn peek(&self) -> Read<u8> {
        self.bytes.get(self.at).copied().ok_or_else(cut_off)
    }

    /// Returns whether the end of a sequence, tuple or map is next.
    pub(super) fn is_at_end(&self) -> bool {
        self.bytes.get(self.at) == Some(&tags::END)
    }

    #[inline]
    pub(super) fn take_tag(&mut self) -> Read<u8> {
        let tag = self.peek()?;
        self.at += 1;
        Ok(tag)
    }

    #[inline]
    fn take_array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let Some(bytes) = self.bytes[self.at..].first_chunk::<N>() else {
            return Err(cut_off());
        };
        self.at += N;
        Ok(*bytes)
    }

    /// Takes the tag if it is this one.
    #[inline]
    fn take_if(&mut self, tag: u8) -> bool {
        let is_next = self.bytes.get(self.at) == Some(&tag);
        self.at += usize::from(is_next);
        is_next
    }

    #[inline]
    pub(super) fn take_varint(&mut self) -> Read<u64> {
        let first = self.take_tag()?;
        if first < 0x80 {
            return Ok(first.into());
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.take_tag()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(damaged("an integer"))
    }

    #[inline]
    pub(super) fn take_bytes(&mut self, length: u64) -> Read<&'de [u8]> {
        let rest = &self.bytes[self.at..];
        let length = usize::try_from(length).map_err(|_| cut_off())?;
        let Some(bytes) = rest.get(..length) else {
            return Err(cut_off());
        };
        self.at += length;
        Ok(bytes)
    }

    #[inline]
    pub(super) fn take_str(&mut self) -> Read<&'de str> {
        let length = self.take_varint()?;
        let bytes = self.take_bytes(length)?;
        std::str::from_utf8(bytes).map_err(|_| damaged("text"))
    }

    fn take_char(&mut self) -> Read<char> {
        let number = u32::try_from(self.take_varint()?).ok();
        number
            .and_then(char::from_u32)
            .ok_or_else(|| damaged("a character"))
    }

    /// Takes a name; `None` is the end of a struct.
    #[inline]
    pub(super) fn take_name(&mut self) -> Read<Option<&'de str>> {
        match self.take_name_bytes()? {
            Some(name) => text_of(name).map(Some),
            None => Ok(None),
        }
    }

    #[inline]
    fn take_name_bytes(&mut self) -> Read<Option<&'de [u8]>> {
        let number = self.take_varint()?;
        if number == u64::from(tags::END) {
            return Ok(None);
        }
        let name = if number % 2 == 0 {
            self.take_bytes(number / 2 - 1)?
        } else {
            self.earlier_name(number / 2)?
        };
        Ok(Some(name))
    }

    fn earlier_name(&self, at: u64) -> Read<&'de [u8]> {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if at >= self.at {
            return Err(damaged("a name"));
        }
        let mut earlier = Reader {
            bytes: self.bytes,
            at,
        };
        match earlier.take_varint()? {
            number if number > 0 && number % 2 == 0 => earlier.take_bytes(number / 2 - 1),
            _ => Err(damaged("a name")),
        }
    }

    fn take_variant(&mut self) -> Read<&'de str> {
        self.take_name()?
            .ok_or_else(|| damaged("the name of a variant"))
    }

    /// Takes the end of a sequence, tuple or map.
    #[inline]
    fn take_end(&mut self) -> Read<()> {
        match self.take_tag()? {
            tags::END => Ok(()),
            _ => Err(TaggedError::new(
                "more items were written than are read back",
            )),
        }
    }

    /// Skips a value.
    pub(super) fn skip(&mut self) -> Read<()> {
        match self.take_tag()? {
            tags::NONE | tags::UNIT | tags::FALSE | tags::TRUE | tags::SMALL_U8.. => {}
            tags::U8 | tags::I8 => {
                self.take_tag()?;
            }
            tags::U16..=tags::U64 | tags::I16..=tags::I64 | tags::CHAR => {
                self.take_varint()?;
            }
            tags::U128 | tags::I128 => {
                self.take_bytes(16)?;
            }
            tags::F32 => {
                self.take_bytes(4)?;
            }
            tags::F64 => {
                self.take_bytes(8)?;
            }
            tags::STR | tags::BYTES => {
                let length = self.take_varint()?;
                self.take_bytes(length)?;
            }
            tags::SOME => self.skip()?,
            tags::UNIT_VARIANT => {
                self.take_variant()?;
            }
            tags::VARIANT => {
                self.take_variant()?;
                self.skip()?;
            }
            tags::STRUCT => {
                while self.take_name()?.is_some() {
                    self.skip()?;
                }
            }
            tag @ (tags::SEQ | tags::MAP | tags::TUPLE) => {
                if tag != tags::TUPLE {
                    self.take_varint()?;
                }
                while self.peek()? != tags::END {
                    self.skip()?;
                }
                self.take_end()?;
            }
            _ => return Err(damaged("a value")),
        }
        Ok(())
    }

    /// Returns the error for a value of another kind than is read. Its tag was taken.
    #[cold]
    fn mismatch<'v, V: Visitor<'v>>(&mut self, tag: u8, visitor: &V) -> TaggedError {
        match self.unexpected(tag) {
            Ok(unexpected) => TaggedError::invalid_type(unexpected, visitor),
            Err(error) => error,
        }
    }

    /// Takes the bytes of a value without others in it.
    pub(super) fn take_scalar(&mut self) -> Read<&'de [u8]> {
        let start = self.at;
        self.skip()?;
        Ok(&self.bytes[start..self.at])
    }

    /// Describes a value whose tag was taken.
    pub(super) fn unexpected(&mut self, tag: u8) -> Read<Unexpected<'de>> {
        Ok(match tag {
            tags::NONE | tags::SOME => Unexpected::Option,
            tags::UNIT => Unexpected::Unit,
            tags::FALSE | tags::TRUE => Unexpected::Bool(tag == tags::TRUE),
            tags::U8 => Unexpected::Unsigned(self.take_tag()?.into()),
            tags::SMALL_U8.. => Unexpected::Unsigned((tag & !tags::SMALL_U8).into()),
            tags::U16..=tags::U64 => Unexpected::Unsigned(self.take_varint()?),
            tags::I8 => Unexpected::Signed((self.take_tag()? as i8).into()),
            tags::I16..=tags::I64 => Unexpected::Signed(unzigzag(self.take_varint()?)),
            tags::U128 | tags::I128 => Unexpected::Other("an integer of 128 bits"),
            tags::F32 => Unexpected::Float(f32::from_le_bytes(self.take_array()?).into()),
            tags::F64 => Unexpected::Float(f64::from_le_bytes(self.take_array()?)),
            tags::CHAR => Unexpected::Char(self.take_char()?),
            tags::STR => Unexpected::Str(self.take_str()?),
            tags::BYTES => Unexpected::Other("bytes"),
            tags::SEQ | tags::TUPLE => Unexpected::Seq,
            tags::MAP | tags::STRUCT => Unexpected::Map,
            tags::UNIT_VARIANT => Unexpected::UnitVariant,
            tags::VARIANT => Unexpected::Other("a variant with data"),
            _ => return Err(damaged("a value")),
        })
    }

    /// Visits an integer or float as it was written.
    fn visit_number<V: Visitor<'de>>(&mut self, visitor: V) -> Read<V::Value> {
        match self.take_tag()? {
            tag @ tags::SMALL_U8.. => visitor.visit_u8(tag & !tags::SMALL_U8),
            tags::U8 => visitor.visit_u8(self.take_tag()?),
            tags::U16 => visitor.visit_u16(narrowed(self.take_varint()?)?),
            tags::U32 => visitor.visit_u32(narrowed(self.take_varint()?)?),
            tags::U64 => visitor.visit_u64(self.take_varint()?),
            tags::I8 => visitor.visit_i8(self.take_tag()? as i8),
            tags::I16 => visitor.visit_i16(narrowed(unzigzag(self.take_varint()?))?),
            tags::I32 => visitor.visit_i32(narrowed(unzigzag(self.take_varint()?))?),
            tags::I64 => visitor.visit_i64(unzigzag(self.take_varint()?)),
            tags::U128 => visitor.visit_u128(u128::from_le_bytes(self.take_array()?)),
            tags::I128 => visitor.visit_i128(i128::from_le_bytes(self.take_array()?)),
            tags::F32 => visitor.visit_f32(f32::from_le_bytes(self.take_array()?)),
            tags::F64 => visitor.visit_f64(f64::from_le_bytes(self.take_array()?)),
            tag => Err(self.mismatch(tag, &visitor)),
        }
    }

    #[inline]
    fn visit_text<V: Visitor<'de>>(&mut self, visitor: V) -> Read<V::Value> {
        match self.take_tag()? {
            tags::STR => visitor.visit_borrowed_str(self.take_str()?),
            tags::CHAR => visitor.visit_char(self.take_char()?),
            tags::UNIT_VARIANT => visitor.visit_borrowed_str(self.take_variant()?),
            tags::BYTES => visitor.visit_borrowed_bytes(self.take_counted()?),
            tag => Err(self.mismatch(tag, &visitor)),
        }
    }

    fn take_counted(&mut self) -> Read<&'de [u8]> {
        let length = self.take_varint()?;
        self.take_bytes(length)
    }

    #[inline]
    fn visit_items<V: Visitor<'de>>(&mut self, hint: u64, visitor: V) -> Read<V::Value> {
        let value = visitor.visit_seq(Items {
            hint: self.likely(hint),
            reader: self,
        })?;
        self.take_end()?;
        Ok(value)
    }

    #[inline]
    fn visit_entries<V: Visitor<'de>>(&mut self, hint: u64, visitor: V) -> Read<V::Value> {
        let value = visitor.visit_map(Entries {
            hint: self.likely(hint),
            reader: self,
        })?;
        self.take_end()?;
        Ok(value)
    }

    #[inline]
    fn visit_fields<V: Visitor<'de>>(
        &mut self,
        likely: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        let mut is_done = false;
        let value = visitor.visit_map(Fields {
            reader: self,
            likely,
            is_done: &mut is_done,
        })?;
        if !is_done && self.take_name()?.is_some() {
            return Err(TaggedError::new(
                "more fields were written than are read back",
            ));
        }
        Ok(value)
    }

    /// Returns how many items there can be at most, for a reader that reserves memory for them.
    #[inline]
    fn likely(&self, hint: u64) -> usize {
        usize::try_from(hint)
            .unwrap_or(usize::MAX)
            .min(self.bytes.len() - self.at)
    }
}

fn text_of(name: &[u8]) -> Read<&str> {
    std::str::from_utf8(name).map_err(|_| damaged("a name"))
}

fn narrowed<A, B: TryFrom<A>>(number: A) -> Read<B> {
    B::try_from(number).map_err(|_| damaged("an integer"))
}

#[cold]
fn cut_off() -> TaggedError {
    TaggedError::new("it ends too early")
}

#[cold]
fn damaged(what: &str) -> TaggedError {
    TaggedError::new(format!("{what} in it is damaged"))
}

#[cold]
fn inexact(number: impl std::fmt::Display, target: &str) -> TaggedError {
    TaggedError::new(format!(
        "the number {number} cannot be represented as {target}"
    ))
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = TaggedError;

    /// Describes a value to readers that keep it first and choose a type later. To them an enum is text, or a map of
    /// one entry.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.peek()? {
            tags::NONE | tags::SOME => self.deserialize_option(visitor),
            tags::UNIT => self.deserialize_unit(visitor),
            tags::FALSE | tags::TRUE => self.deserialize_bool(visitor),
            tags::U8..=tags::F64 | tags::SMALL_U8.. => self.visit_number(visitor),
            tags::CHAR | tags::STR | tags::UNIT_VARIANT | tags::BYTES => self.visit_text(visitor),
            tags::SEQ | tags::TUPLE => self.deserialize_seq(visitor),
            tags::MAP | tags::STRUCT => self.deserialize_map(visitor),
            tags::VARIANT => {
                self.at += 1;
                let name = self.take_variant()?;
                visitor.visit_map(OneEntry {
                    name: Some(name),
                    reader: self,
                })
            }
            _ => Err(damaged("a value")),
        }
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.take_tag()? {
            tags::FALSE => visitor.visit_bool(false),
            tags::TRUE => visitor.visit_bool(true),
            tag => Err(self.mismatch(tag, &visitor)),
        }
    }

    #[inline]
    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.visit_number(visitor)
    }

    #[inline]
    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.visit_number(visitor)
    }

    #[inline]
    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if self.take_if(tags::U32) {
            return visitor.visit_u32(narrowed(self.take_varint()?)?);
        }
        self.visit_number(visitor)
    }

    #[inline]
    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if self.take_if(tags::U64) {
            return visitor.visit_u64(self.take_varint()?);
        }
        self.visit_number(visitor)
    }

    #[inline]
    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.visit_number(visitor)
    }

    #[inline]
    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.visit_number(visitor)
    }

    #[inline]
    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.visit_number(visitor)
    }

    #[inline]
    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if self.take_if(tags::I32) {
            return visitor.visit_i32(narrowed(unzigzag(self.take_varint()?))?);
        }
        self.visit_number(visitor)
    }

    #[inline]
    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if self.take_if(tags::I64) {
            return visitor.visit_i64(unzigzag(self.take_varint()?));
        }
        self.visit_number(visitor)
    }

    #[inline]
    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.visit_number(visitor)
    }

    #[inline]
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if self.take_if(tags::F32) {
            return visitor.visit_f32(f32::from_le_bytes(self.take_array()?));
        }
        match self.clone().take_number()? {
            Number::Float(number) if number.is_finite() && (number as f32).is_infinite() => {
                Err(inexact(number, "an f32"))
            }
            Number::Integer(number) if number as f32 as i128 != number => {
                Err(inexact(number, "an f32"))
            }
            Number::Float(_) | Number::Integer(_) | Number::Other => self.visit_number(visitor),
        }
    }

    #[inline]
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if self.take_if(tags::F64) {
            return visitor.visit_f64(f64::from_le_bytes(self.take_array()?));
        }
        match self.clone().take_number()? {
            Number::Integer(number) if number as f64 as i128 != number => {
                Err(inexact(number, "an f64"))
            }
            Number::Float(_) | Number::Integer(_) | Number::Other => self.visit_number(visitor),
        }
    }

    #[inline]
    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.visit_text(visitor)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.visit_text(visitor)
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.visit_text(visitor)
    }

    #[inline]
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.peek()? {
            tags::SEQ | tags::TUPLE => self.deserialize_seq(visitor),
            _ => self.visit_text(visitor),
        }
    }

    #[inline]
    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.peek()? {
            tags::NONE => {
                self.at += 1;
                visitor.visit_none()
            }
            tags::SOME => {
                self.at += 1;
                visitor.visit_some(self)
            }
            tags::UNIT => self.deserialize_unit(visitor),
            _ => visitor.visit_some(self),
        }
    }

    #[inline]
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.take_tag()? {
            tags::UNIT => visitor.visit_unit(),
            tag => Err(self.mismatch(tag, &visitor)),
        }
    }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Read<V::Value> {
        self.deserialize_unit(visitor)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Read<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.take_tag()? {
            tags::SEQ => {
                let hint = self.take_varint()?;
                self.visit_items(hint, visitor)
            }
            tags::TUPLE => self.visit_items(0, visitor),
            tags::BYTES => {
                let bytes = self.take_counted()?;
                let mut items = de::value::SeqDeserializer::new(bytes.iter().copied());
                let value = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(value)
            }
            tag => Err(self.mismatch(tag, &visitor)),
        }
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Read<V::Value> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Read<V::Value> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.take_tag()? {
            tags::STRUCT => self.visit_fields(&[], visitor),
            tags::MAP => {
                let hint = self.take_varint()?;
                self.visit_entries(hint, visitor)
            }
            tag => Err(self.mismatch(tag, &visitor)),
        }
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        if self.take_if(tags::STRUCT) {
            return self.visit_fields(fields, visitor);
        }
        match self.peek()? {
            tags::SEQ | tags::TUPLE => self.deserialize_seq(visitor),
            _ => self.deserialize_map(visitor),
        }
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        match self.take_tag()? {
            tags::UNIT_VARIANT => visitor.visit_enum(self.take_variant()?.into_deserializer()),
            tags::STR => visitor.visit_enum(self.take_str()?.into_deserializer()),
            tags::VARIANT => {
                let name = self.take_variant()?;
                visitor.visit_enum(Variant { name, reader: self })
            }
            tag => Err(self.mismatch(tag, &visitor)),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.deserialize_any(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.skip()?;
        visitor.visit_unit()
    }
}

/// A number that is to be read as a float.
enum Number {
    Integer(i128),
    Float(f64),
    /// Not a number, or an integer of 128 bits.
    Other,
}

impl Reader<'_> {
    fn take_number(&mut self) -> Read<Number> {
        let tag = self.take_tag()?;
        Ok(match self.unexpected(tag)? {
            Unexpected::Unsigned(number) => Number::Integer(number.into()),
            Unexpected::Signed(number) => Number::Integer(number.into()),
            Unexpected::Float(number) => Number::Float(number),
            _ => Number::Other,
        })
    }
}

/// The items of a sequence or tuple.
struct Items<'r, 'de> {
    reader: &'r mut Reader<'de>,
    hint: usize,
}

impl<'de> de::SeqAccess<'de> for Items<'_, 'de> {
    type Error = TaggedError;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Read<Option<T::Value>> {
        if self.reader.peek()? == tags::END {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.hint)
    }
}

/// The entries of a map.
struct Entries<'r, 'de> {
    reader: &'r mut Reader<'de>,
    hint: usize,
}

impl<'de> de::MapAccess<'de> for Entries<'_, 'de> {
    type Error = TaggedError;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        if self.reader.peek()? == tags::END {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Read<V::Value> {
        seed.deserialize(&mut *self.reader)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.hint)
    }
}

/// The fields of a struct, as a map from their names.
struct Fields<'r, 'de> {
    reader: &'r mut Reader<'de>,
    /// The next names, if the fields were written in the order of their declaration.
    likely: &'static [&'static str],
    /// Set once the end was taken.
    is_done: &'r mut bool,
}

impl<'de> de::MapAccess<'de> for Fields<'_, 'de> {
    type Error = TaggedError;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        if *self.is_done {
            return Ok(None);
        }
        let Some(name) = self.reader.take_name_bytes()? else {
            *self.is_done = true;
            return Ok(None);
        };
        let name = match self.likely.split_first() {
            Some((likely, others)) if likely.as_bytes() == name => {
                self.likely = others;
                likely
            }
            _ => text_of(name)?,
        };
        seed.deserialize(BorrowedStrDeserializer::new(name))
            .map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Read<V::Value> {
        seed.deserialize(&mut *self.reader)
    }
}

/// A variant with data, as a map from its name.
struct OneEntry<'r, 'de> {
    name: Option<&'de str>,
    reader: &'r mut Reader<'de>,
}

impl<'de> de::MapAccess<'de> for OneEntry<'_, 'de> {
    type Error = TaggedError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        match self.name.take() {
            Some(name) => seed
                .deserialize(BorrowedStrDeserializer::new(name))
                .map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Read<V::Value> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(1)
    }
}

/// A variant with data.
struct Variant<'r, 'de> {
    name: &'de str,
    reader: &'r mut Reader<'de>,
}

impl<'de> de::EnumAccess<'de> for Variant<'_, 'de> {
    type Error = TaggedError;
    type Variant = Self;

    #[inline]
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Read<(V::Value, Self)> {
        let variant = seed.deserialize(BorrowedStrDeserializer::<TaggedError>::new(self.name))?;
        Ok((variant, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_, 'de> {
    type Error = TaggedError;

    fn unit_variant(self) -> Read<()> {
        serde::Deserialize::deserialize(self.reader)
    }

    #[inline]
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Read<T::Value> {
        seed.deserialize(self.reader)
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Read<V::Value> {
        self.reader.deserialize_seq(visitor)
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        self.reader.deserialize_struct("", fields, visitor)
    }
}
