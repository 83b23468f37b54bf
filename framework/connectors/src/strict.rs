//! A deserializer around that of a format, for rules that serde leaves to each type:
//!
//! - A map in which a name occurs twice is invalid. Maps of other crates keep one of the values, and a struct
//!   with a flattened field keeps them all.
//! - A list is not a struct. Derived structs also accept their fields in order.
//! - An integer is valid for a float. Formats with typed columns refuse it unless the column decides.

use std::collections::HashSet;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};

/// Deserializes a value by these rules.
pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    inner: D,
) -> Result<T, D::Error> {
    T::deserialize(Strict {
        inner,
        role: Role::Value,
    })
}

/// The result of a deserializer.
enum Role<'n> {
    Value,
    /// The fields of a struct, which rejects repeated fields itself.
    Struct,
    /// A name in a map, to be noted here.
    Name(&'n mut Option<Vec<u8>>),
}

impl Role<'_> {
    #[inline]
    fn note(&mut self, name: &[u8]) {
        if let Role::Name(noted) = self {
            **noted = Some(name.to_vec());
        }
    }

    #[inline]
    fn note_shown(&mut self, name: &impl fmt::Display) {
        if let Role::Name(noted) = self {
            **noted = Some(name.to_string().into_bytes());
        }
    }
}

struct Strict<'n, D> {
    inner: D,
    role: Role<'n>,
}

impl<'n, D> Strict<'n, D> {
    #[inline]
    fn wrap<V>(self, visitor: V) -> (D, StrictVisitor<'n, V>) {
        (
            self.inner,
            StrictVisitor {
                visitor,
                role: self.role,
            },
        )
    }
}

struct StrictVisitor<'n, V> {
    visitor: V,
    role: Role<'n>,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<'_, D> {
    type Error = D::Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_any(visitor)
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_bool(visitor)
    }

    #[inline]
    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_i8(visitor)
    }

    #[inline]
    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_i16(visitor)
    }

    #[inline]
    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_i32(visitor)
    }

    #[inline]
    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_i64(visitor)
    }

    #[inline]
    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_i128(visitor)
    }

    #[inline]
    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_u8(visitor)
    }

    #[inline]
    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_u16(visitor)
    }

    #[inline]
    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_u32(visitor)
    }

    #[inline]
    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_u64(visitor)
    }

    #[inline]
    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_u128(visitor)
    }

    /// The column decides, because serde's floats also accept integers.
    #[inline]
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_any(visitor)
    }

    /// As [`deserialize_f32`](Deserializer::deserialize_f32).
    #[inline]
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_any(visitor)
    }

    #[inline]
    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_char(visitor)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_string(visitor)
    }

    #[inline]
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_byte_buf(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_option(visitor)
    }

    #[inline]
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_unit(visitor)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_map(visitor)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_identifier(visitor)
    }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_unit_struct(name, visitor)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_newtype_struct(name, visitor)
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_tuple(length, visitor)
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_tuple_struct(name, length, visitor)
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_struct(
            name,
            fields,
            StrictVisitor {
                visitor,
                role: Role::Struct,
            },
        )
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.wrap(visitor);
        inner.deserialize_enum(name, variants, visitor)
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_ignored_any(visitor)
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for StrictVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(formatter)
    }

    #[inline]
    fn visit_bool<E: Error>(mut self, truth: bool) -> Result<V::Value, E> {
        self.role.note_shown(&truth);
        self.visitor.visit_bool(truth)
    }

    #[inline]
    fn visit_i8<E: Error>(mut self, number: i8) -> Result<V::Value, E> {
        self.role.note_shown(&number);
        self.visitor.visit_i8(number)
    }

    #[inline]
    fn visit_i16<E: Error>(mut self, number: i16) -> Result<V::Value, E> {
        self.role.note_shown(&number);
        self.visitor.visit_i16(number)
    }

    #[inline]
    fn visit_i32<E: Error>(mut self, number: i32) -> Result<V::Value, E> {
        self.role.note_shown(&number);
        self.visitor.visit_i32(number)
    }

    #[inline]
    fn visit_i64<E: Error>(mut self, number: i64) -> Result<V::Value, E> {
        self.role.note_shown(&number);
        self.visitor.visit_i64(number)
    }

    #[inline]
    fn visit_i128<E: Error>(mut self, number: i128) -> Result<V::Value, E> {
        self.role.note_shown(&number);
        self.visitor.visit_i128(number)
    }

    #[inline]
    fn visit_u8<E: Error>(mut self, number: u8) -> Result<V::Value, E> {
        self.role.note_shown(&number);
        self.visitor.visit_u8(number)
    }

    #[inline]
    fn visit_u16<E: Error>(mut self, number: u16) -> Result<V::Value, E> {
        self.role.note_shown(&number);
        self.visitor.visit_u16(number)
    }

    #[inline]
    fn visit_u32<E: Error>(mut self, number: u32) -> Result<V::Value, E> {
        self.role.note_shown(&number);
        self.visitor.visit_u32(number)
    }

    #[inline]
    fn visit_u64<E: Error>(mut self, number: u64) -> Result<V::Value, E> {
        self.role.note_shown(&number);
        self.visitor.visit_u64(number)
    }

    #[inline]
    fn visit_u128<E: Error>(mut self, number: u128) -> Result<V::Value, E> {
        self.role.note_shown(&number);
        self.visitor.visit_u128(number)
    }

    #[inline]
    fn visit_f32<E: Error>(mut self, number: f32) -> Result<V::Value, E> {
        self.role.note_shown(&number);
        self.visitor.visit_f32(number)
    }

    #[inline]
    fn visit_f64<E: Error>(mut self, number: f64) -> Result<V::Value, E> {
        self.role.note_shown(&number);
        self.visitor.visit_f64(number)
    }

    #[inline]
    fn visit_char<E: Error>(mut self, letter: char) -> Result<V::Value, E> {
        self.role.note_shown(&letter);
        self.visitor.visit_char(letter)
    }

    #[inline]
    fn visit_str<E: Error>(mut self, text: &str) -> Result<V::Value, E> {
        self.role.note(text.as_bytes());
        self.visitor.visit_str(text)
    }

    #[inline]
    fn visit_borrowed_str<E: Error>(mut self, text: &'de str) -> Result<V::Value, E> {
        self.role.note(text.as_bytes());
        self.visitor.visit_borrowed_str(text)
    }

    #[inline]
    fn visit_string<E: Error>(mut self, text: String) -> Result<V::Value, E> {
        self.role.note(text.as_bytes());
        self.visitor.visit_string(text)
    }

    #[inline]
    fn visit_bytes<E: Error>(mut self, bytes: &[u8]) -> Result<V::Value, E> {
        self.role.note(bytes);
        self.visitor.visit_bytes(bytes)
    }

    #[inline]
    fn visit_borrowed_bytes<E: Error>(mut self, bytes: &'de [u8]) -> Result<V::Value, E> {
        self.role.note(bytes);
        self.visitor.visit_borrowed_bytes(bytes)
    }

    #[inline]
    fn visit_byte_buf<E: Error>(mut self, bytes: Vec<u8>) -> Result<V::Value, E> {
        self.role.note(&bytes);
        self.visitor.visit_byte_buf(bytes)
    }

    #[inline]
    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    #[inline]
    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    #[inline]
    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Strict {
            inner,
            role: self.role,
        })
    }

    #[inline]
    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(Strict {
            inner,
            role: self.role,
        })
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        match self.role {
            Role::Struct => Err(A::Error::invalid_type(Unexpected::Seq, &self)),
            _ => self.visitor.visit_seq(Items(items)),
        }
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        let names = match self.role {
            Role::Struct => None,
            _ => Some(HashSet::new()),
        };
        self.visitor.visit_map(Entries { entries, names })
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(Variant {
            inner: variant,
            role: self.role,
        })
    }
}

/// Deserializes a part of a value.
struct Seed<'n, S> {
    seed: S,
    role: Role<'n>,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Seed<'_, S> {
    type Value = S::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.seed.deserialize(Strict {
            inner,
            role: self.role,
        })
    }
}

struct Items<A>(A);

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<A> {
    type Error = A::Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Seed {
            seed,
            role: Role::Value,
        })
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

struct Entries<A> {
    entries: A,
    /// The names so far; `None` for a struct.
    names: Option<HashSet<Vec<u8>>>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let Some(names) = &mut self.names else {
            return self.entries.next_key_seed(seed);
        };
        let mut noted = None;
        let key = self.entries.next_key_seed(Seed {
            seed,
            role: Role::Name(&mut noted),
        })?;
        if let Some(name) = noted
            && let Some(name) = names.replace(name)
        {
            let name = String::from_utf8_lossy(&name);
            return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
        }
        Ok(key)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.entries.next_value_seed(Seed {
            seed,
            role: Role::Value,
        })
    }

    fn size_hint(&self) -> Option<usize> {
        self.entries.size_hint()
    }
}

struct Variant<'n, A> {
    inner: A,
    role: Role<'n>,
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Variant<'_, A> {
    type Error = A::Error;
    type Variant = VariantContent<A::Variant>;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (name, content) = self.inner.variant_seed(Seed {
            seed,
            role: self.role,
        })?;
        Ok((name, VariantContent(content)))
    }
}

struct VariantContent<A>(A);

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for VariantContent<A> {
    type Error = A::Error;

    #[inline]
    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Seed {
            seed,
            role: Role::Value,
        })
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(
            length,
            StrictVisitor {
                visitor,
                role: Role::Value,
            },
        )
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(
            fields,
            StrictVisitor {
                visitor,
                role: Role::Struct,
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::{BTreeMap, HashMap};

    #[derive(Debug, Deserialize, PartialEq, Eq, Hash, PartialOrd, Ord)]
    enum Letter {
        A,
        B,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Point {
        x: f64,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Open {
        x: f64,
        #[serde(flatten)]
        rest: BTreeMap<String, serde_json::Value>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    enum Shape {
        Dot { x: f64 },
        Line(Point, Point),
        Named(BTreeMap<String, u8>),
    }

    fn read<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, String> {
        let mut json = serde_json::Deserializer::from_str(text);
        deserialize(&mut json).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused<'t, T: Deserialize<'t> + fmt::Debug>(text: &'t str, reason: &str) {
        let error = read::<T>(text).expect_err("it is invalid");
        assert!(error.starts_with(reason), "{error}");
    }

    #[test]
    fn repeated_name_is_rejected_in_every_map() {
        let repeated = "duplicate field `a`";
        refused::<BTreeMap<String, u8>>(r#"{"a":1,"a":2}"#, repeated);
        refused::<HashMap<&str, u8>>(r#"{"a":1,"b":1,"a":1}"#, repeated);
        refused::<serde_json::Value>(r#"{"a":1,"\u0061":2}"#, repeated);
        refused::<serde_json::Value>(r#"[1,{"b":{"a":1,"a":2}}]"#, repeated);
        refused::<Open>(r#"{"x":1,"a":1,"a":2}"#, repeated);
        refused::<Open>(r#"{"x":1,"b":[{"a":1,"a":2}]}"#, repeated);
        refused::<Open>(r#"{"x":1,"x":2}"#, "duplicate field `x`");
        refused::<Option<BTreeMap<String, u8>>>(r#"{"a":1,"a":2}"#, repeated);
        refused::<Vec<(u8, BTreeMap<String, u8>)>>(r#"[[1,{"a":1,"a":2}]]"#, repeated);
        refused::<Shape>(r#"{"Named":{"a":1,"a":2}}"#, repeated);
        refused::<BTreeMap<u8, u8>>(r#"{"1":1,"1":2}"#, "duplicate field `1`");
        refused::<BTreeMap<bool, u8>>(r#"{"true":1,"true":2}"#, "duplicate field `true`");
        refused::<BTreeMap<Letter, u8>>(r#"{"A":1,"B":1,"A":2}"#, "duplicate field `A`");
        refused::<Point>(r#"{"x":1,"x":2}"#, "duplicate field `x`");
        assert_eq!(
            read(r#"{"A":1,"B":2}"#),
            Ok(BTreeMap::from([(Letter::A, 1), (Letter::B, 2)]))
        );
        assert_eq!(
            read(r#"[{"a":1},{"a":1}]"#),
            Ok(vec![BTreeMap::from([("a".to_owned(), 1)]); 2])
        );
        let nested = r#"{"a":{"a":{"a":[1,null,true,-2.5,"a"]}},"b":{"a":1}}"#;
        assert_eq!(
            read::<serde_json::Value>(nested)
                .map(|value| value.to_string())
                .as_deref(),
            Ok(nested)
        );
    }

    #[test]
    fn list_is_not_a_struct() {
        refused::<Point>("[7.5]", "invalid type: sequence, expected struct Point");
        refused::<Vec<Point>>("[[7.5]]", "invalid type: sequence, expected struct Point");
        refused::<Option<Point>>("[7.5]", "invalid type: sequence, expected struct Point");
        refused::<Shape>(
            r#"{"Dot":[1]}"#,
            "invalid type: sequence, expected struct variant Shape::Dot",
        );
        refused::<Shape>(
            r#"{"Line":[{"x":1},[2]]}"#,
            "invalid type: sequence, expected struct Point",
        );
        assert!(read::<Shape>(r#"{"Line":[{"x":1},{"x":2}]}"#).is_ok());
        assert!(read::<(f64,)>("[7.5]").is_ok());
    }
}
