//! Estimates of heap memory, for values that a combiner keeps.

use std::fmt;
use std::mem::needs_drop;

use serde::ser::{
    Error, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// The overhead of a small allocation.
const ALLOCATION_BYTES: usize = 16;

/// The size of a `String` or `Vec` without its content.
const HEADER_BYTES: usize = size_of::<Vec<u8>>();

/// Returns the memory of an allocation of `bytes`; nothing is allocated for 0.
#[inline]
pub(super) fn allocation(bytes: usize) -> usize {
    if bytes == 0 {
        0
    } else {
        bytes + ALLOCATION_BYTES
    }
}

/// Returns about how many bytes of heap memory a value of a serde type takes: 0 if its type owns none.
///
/// Sequences and maps are assumed to have room for as many elements again.
#[inline]
pub(super) fn heap_bytes_of<T: Serialize>(value: &T) -> usize {
    if !needs_drop::<T>() {
        return 0;
    }
    let mut size = SizeSerializer { bytes: 0 };
    match value.serialize(&mut size) {
        // The error of a type that cannot be serialized is reported when it is encoded.
        Ok(()) | Err(NotSerializable) => size.bytes,
    }
}

/// Adds up the memory of the parts of a value.
struct SizeSerializer {
    bytes: usize,
}

/// The type's own `Serialize` returned an error.
#[derive(Debug)]
struct NotSerializable;

impl fmt::Display for NotSerializable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("not serializable")
    }
}

impl std::error::Error for NotSerializable {}

impl Error for NotSerializable {
    fn custom<T: fmt::Display>(_: T) -> NotSerializable {
        NotSerializable
    }
}

impl SizeSerializer {
    fn add(&mut self, bytes: usize) -> Result<(), NotSerializable> {
        self.bytes += bytes;
        Ok(())
    }

    /// Begins a sequence or a map.
    fn begin(&mut self) -> Result<Container<'_>, NotSerializable> {
        self.bytes += HEADER_BYTES + ALLOCATION_BYTES;
        let start = self.bytes;
        Ok(Container { size: self, start })
    }
}

impl<'s> Serializer for &'s mut SizeSerializer {
    type Ok = ();
    type Error = NotSerializable;
    type SerializeSeq = Container<'s>;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Container<'s>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_i8(self, value: i8) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_i16(self, value: i16) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_i32(self, value: i32) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_i64(self, value: i64) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_i128(self, value: i128) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_u8(self, value: u8) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_u16(self, value: u16) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_u32(self, value: u32) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_u64(self, value: u64) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_u128(self, value: u128) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_f32(self, value: f32) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_char(self, value: char) -> Result<(), NotSerializable> {
        self.add(size_of_val(&value))
    }

    fn serialize_str(self, value: &str) -> Result<(), NotSerializable> {
        self.add(HEADER_BYTES + allocation(value.len()))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), NotSerializable> {
        self.add(HEADER_BYTES + allocation(value.len()))
    }

    fn serialize_none(self) -> Result<(), NotSerializable> {
        self.add(HEADER_BYTES)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NotSerializable> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), NotSerializable> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), NotSerializable> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
    ) -> Result<(), NotSerializable> {
        self.add(HEADER_BYTES)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), NotSerializable> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), NotSerializable> {
        self.bytes += HEADER_BYTES;
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Container<'s>, NotSerializable> {
        self.begin()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, NotSerializable> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, NotSerializable> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, NotSerializable> {
        self.bytes += HEADER_BYTES;
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Container<'s>, NotSerializable> {
        self.begin()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, NotSerializable> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, NotSerializable> {
        self.bytes += HEADER_BYTES;
        Ok(self)
    }
}

/// A sequence or a map, whose elements begin at `start`.
struct Container<'s> {
    size: &'s mut SizeSerializer,
    start: usize,
}

impl Container<'_> {
    fn end(self) {
        let elements = self.size.bytes - self.start;
        self.size.bytes += elements;
    }
}

impl SerializeSeq for Container<'_> {
    type Ok = ();
    type Error = NotSerializable;

    fn serialize_element<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
    ) -> Result<(), NotSerializable> {
        value.serialize(&mut *self.size)
    }

    fn end(self) -> Result<(), NotSerializable> {
        Container::end(self);
        Ok(())
    }
}

impl SerializeMap for Container<'_> {
    type Ok = ();
    type Error = NotSerializable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NotSerializable> {
        key.serialize(&mut *self.size)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotSerializable> {
        value.serialize(&mut *self.size)
    }

    fn end(self) -> Result<(), NotSerializable> {
        Container::end(self);
        Ok(())
    }
}

impl SerializeTuple for &mut SizeSerializer {
    type Ok = ();
    type Error = NotSerializable;

    fn serialize_element<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
    ) -> Result<(), NotSerializable> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), NotSerializable> {
        Ok(())
    }
}

impl SerializeTupleStruct for &mut SizeSerializer {
    type Ok = ();
    type Error = NotSerializable;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotSerializable> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), NotSerializable> {
        Ok(())
    }
}

impl SerializeTupleVariant for &mut SizeSerializer {
    type Ok = ();
    type Error = NotSerializable;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotSerializable> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), NotSerializable> {
        Ok(())
    }
}

impl SerializeStruct for &mut SizeSerializer {
    type Ok = ();
    type Error = NotSerializable;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        _: &'static str,
        value: &T,
    ) -> Result<(), NotSerializable> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), NotSerializable> {
        Ok(())
    }
}

impl SerializeStructVariant for &mut SizeSerializer {
    type Ok = ();
    type Error = NotSerializable;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        _: &'static str,
        value: &T,
    ) -> Result<(), NotSerializable> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), NotSerializable> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn heap_of_serde_types_is_estimated_within_a_factor() {
        let map: HashMap<String, u64> = (0..1000u64)
            .map(|number| (format!("key {number:08}"), number))
            .collect();
        let slots = map.capacity() * 8 / 7 * (24 + 8 + 1);
        let actual = 1000 * (12 + 16) + slots;
        let estimated = heap_bytes_of(&map);
        assert!(
            (actual..3 * actual).contains(&estimated),
            "{estimated} for {actual}"
        );

        assert_eq!(heap_bytes_of(&(1u64, 2.5f64)), 0);
        assert!(heap_bytes_of(&Some("x".repeat(1 << 20))) >= 1 << 20);
        assert!(heap_bytes_of(&vec![0u8; 1 << 20]) >= 1 << 20);
    }
}
