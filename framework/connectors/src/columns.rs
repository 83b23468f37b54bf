//! The columns that a row type needs.
//!
//! Deserializing a struct from a dummy value fails, but first passes the names of its fields.

use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Returns the serde field names of the struct `T`; `None` for other types, which take all columns.
pub(crate) fn columns<'de, T: Deserialize<'de>>() -> Option<&'static [&'static str]> {
    let mut names = None;
    // Always fails: there is no row.
    drop(T::deserialize(FieldNames { names: &mut names }));
    names
}

struct FieldNames<'h> {
    names: &'h mut Option<&'static [&'static str]>,
}

fn names_only<T>() -> Result<T, Error> {
    Err(Error::custom("a dummy value for the names of the columns"))
}

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        names_only()
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.names = Some(fields);
        names_only()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Flight<'a> {
        #[serde(rename = "Carrier")]
        carrier: &'a str,
        delay: Option<i64>,
        #[serde(skip)]
        seen: bool,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Wrapped<'a>(#[serde(borrow)] Flight<'a>);

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Open {
        delay: i64,
        #[serde(flatten)]
        rest: std::collections::BTreeMap<String, String>,
    }

    #[test]
    fn struct_selects_its_fields_other_types_all() {
        assert_eq!(columns::<Flight<'_>>(), Some(&["Carrier", "delay"][..]));
        assert_eq!(columns::<Wrapped<'_>>(), Some(&["Carrier", "delay"][..]));
        assert_eq!(columns::<(String, u64)>(), None);
        assert_eq!(columns::<Vec<String>>(), None);
        assert_eq!(columns::<Open>(), None, "it takes whatever there is");
    }
}
