//! Which columns a row type asks for.
//!
//! A deserializer without a value fails, but is told the names of the fields first if the type is a struct.

use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The fields of `T`, under the names that serde knows them by; `None` where it is no struct, and so takes
/// all columns.
pub(crate) fn columns<'de, T: Deserialize<'de>>() -> Option<&'static [&'static str]> {
    let mut heard = None;
    // It fails, as it must: there is nothing to make a row of.
    drop(T::deserialize(Asked { heard: &mut heard }));
    heard
}

struct Asked<'h> {
    heard: &'h mut Option<&'static [&'static str]>,
}

/// There is no row.
fn no_row<T>() -> Result<T, Error> {
    Err(Error::custom("only the names of columns were asked for"))
}

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        no_row()
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.heard = Some(fields);
        no_row()
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
