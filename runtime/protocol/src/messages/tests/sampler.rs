//! Generates a value for every variant that a message can have, from its type alone.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::value::{Error, U32Deserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer,
    MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// Returns values of a type, each with the names of its variants.
pub(super) fn samples<M: DeserializeOwned>() -> Vec<(String, M)> {
    let mut sampler = Sampler::default();
    let mut samples = Vec::new();
    loop {
        let sample = M::deserialize(&mut sampler).expect("a message can be made of any values");
        samples.push((sampler.path.join("."), sample));
        if !sampler.turn() {
            return samples;
        }
    }
}

#[derive(Default)]
struct Sampler {
    /// The variant to choose at each enum, and the number of its variants.
    choices: Vec<(usize, usize)>,
    /// The number of enums so far, and the names of the chosen variants.
    met: usize,
    path: Vec<&'static str>,
    /// Variants that were chosen before, by enum.
    seen: BTreeMap<&'static str, BTreeSet<usize>>,
    /// Enums with at least one variant that has fields.
    deep: BTreeSet<&'static str>,
    values: u8,
}

impl Sampler {
    /// Advances to the next combination of variants; returns false after the last.
    fn turn(&mut self) -> bool {
        (self.met, self.values) = (0, 0);
        self.path.clear();
        while let Some((chosen, count)) = self.choices.pop() {
            if chosen + 1 < count {
                self.choices.push((chosen + 1, count));
                return true;
            }
        }
        false
    }

    fn choose(&mut self, name: &'static str, variants: &'static [&'static str]) -> usize {
        let seen = self.seen.entry(name).or_default();
        if self.met == self.choices.len() {
            // An enum without fields whose variants have all occurred need not be enumerated again.
            let known = seen.len() == variants.len() && !self.deep.contains(name);
            self.choices
                .push((0, if known { 1 } else { variants.len() }));
        }
        let (chosen, _) = self.choices[self.met];
        seen.insert(chosen);
        self.met += 1;
        self.path.push(variants[chosen]);
        chosen
    }

    /// Returns a different number for each value of a message.
    fn value(&mut self) -> u8 {
        self.values = self.values.wrapping_add(1);
        self.values
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let mut bytes = [0; size_of::<$type>()];
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = at as u8;
            }
            bytes[0] = self.value();
            visitor.$visit(<$type>::from_le_bytes(bytes))
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Sampler {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("a message says which types it holds"))
    }

    numbers! {
        deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64, deserialize_u128 visit_u128 u128, deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32, deserialize_i64 visit_i64 i64,
        deserialize_i128 visit_i128 i128, deserialize_f32 visit_f32 f32, deserialize_f64 visit_f64 f64,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(true)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_char('c')
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(format!("text {}", self.value()))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_byte_buf(vec![0xff, self.value()])
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Elements {
            sampler: self,
            left: 1,
        })
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_seq(Elements {
            sampler: self,
            left: length,
        })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(Elements {
            sampler: self,
            left: 1,
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let chosen = self.choose(name, variants);
        visitor.visit_enum(Chosen {
            sampler: self,
            name,
            chosen,
        })
    }

    forward_to_deserialize_any! { identifier ignored_any }
}

/// The elements of a list, a structure or a map.
struct Elements<'a> {
    sampler: &'a mut Sampler,
    left: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.sampler).map(Some)
    }
}

impl<'de> MapAccess<'de> for Elements<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(&mut *self.sampler)
    }
}

/// The chosen variant of an enum.
struct Chosen<'a> {
    sampler: &'a mut Sampler,
    name: &'static str,
    chosen: usize,
}

impl<'de> EnumAccess<'de> for Chosen<'_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let index: U32Deserializer<Error> = (self.chosen as u32).into_deserializer();
        Ok((seed.deserialize(index)?, self))
    }
}

impl<'de> VariantAccess<'de> for Chosen<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        self.sampler.deep.insert(self.name);
        seed.deserialize(self.sampler)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Error> {
        self.sampler.deep.insert(self.name);
        self.sampler.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.tuple_variant(fields.len(), visitor)
    }
}
