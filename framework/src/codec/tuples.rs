//! Tuples of one to six fields, encoded as their fields in sequence; the last one is in the form of the
//! whole.

use super::derive_support::{decode_field, fixed_sum_of, measure_field};
use super::{DecodeError, Key, Scratch, Value};

/// `$name` are the fields before the last one, `$last` is the last.
macro_rules! tuple_key {
    ($($name:ident $value:ident),*; $last_name:ident $last_value:ident) => {
        impl<$($name: Value,)* $last_name: Value> Value for ($($name,)* $last_name,) {
            type Ref<'a> = ($($name::Ref<'a>,)* $last_name::Ref<'a>,);
            type Owned = ($($name::Owned,)* $last_name::Owned,);
            const FIXED: Option<usize> = fixed_sum_of(&[$($name::FIXED,)* $last_name::FIXED]);
            const VARIES: bool = $($name::VARIES ||)* $last_name::VARIES;

            #[inline]
            fn encode(($($value,)* $last_value,): Self::Ref<'_>, last: bool, out: &mut Vec<u8>) {
                $($name::encode($value, false, out);)*
                $last_name::encode($last_value, last, out);
            }

            #[inline]
            fn encode_owned(($($value,)* $last_value,): &Self::Owned, last: bool, out: &mut Vec<u8>) {
                $($name::encode_owned($value, false, out);)*
                $last_name::encode_owned($last_value, last, out);
            }

            #[inline]
            fn decode<'a>(
                input: &mut &'a [u8],
                last: bool,
                scratch: &'a Scratch,
            ) -> Result<Self::Ref<'a>, DecodeError> {
                let whole = input.len();
                $(let $value = decode_field::<$name>(input, whole, false, scratch)?;)*
                let $last_value = decode_field::<$last_name>(input, whole, last, scratch)?;
                Ok(($($value,)* $last_value,))
            }

            #[inline]
            fn measure(bytes: &[u8], last: bool, flip: u8) -> Result<usize, DecodeError> {
                let mut at = 0;
                $(measure_field::<$name>(bytes, &mut at, false, flip)?;)*
                measure_field::<$last_name>(bytes, &mut at, last, flip)?;
                Ok(at)
            }

            #[inline]
            fn to_owned(($($value,)* $last_value,): Self::Ref<'_>) -> Self::Owned {
                ($($name::to_owned($value),)* $last_name::to_owned($last_value),)
            }

            #[inline]
            fn heap_bytes(($($value,)* $last_value,): &Self::Owned) -> usize {
                $($name::heap_bytes($value) +)* $last_name::heap_bytes($last_value)
            }

            fn family() -> String {
                tuple_family(&[$($name::family(),)* $last_name::family()])
            }
        }

        impl<$($name: Key,)* $last_name: Key> Key for ($($name,)* $last_name,) {
            #[inline]
            fn encode_key(($($value,)* $last_value,): Self::Ref<'_>, last: bool, out: &mut Vec<u8>) {
                $($name::encode_key($value, false, out);)*
                $last_name::encode_key($last_value, last, out);
            }
        }
    };
}

tuple_key!(; A a);
tuple_key!(A a; B b);
tuple_key!(A a, B b; C c);
tuple_key!(A a, B b, C c; D d);
tuple_key!(A a, B b, C c, D d; E e);
tuple_key!(A a, B b, C c, D d, E e; F f);

fn tuple_family(fields: &[String]) -> String {
    match fields {
        [only] => format!("({only},)"),
        _ => format!("({})", fields.join(", ")),
    }
}
