//! Keys and values as text.

use std::cmp::Reverse;
use std::io::Write;

/// A key or value that a text output can write.
///
/// Text and bytes are written unchanged, numbers in decimal (floats in the shortest form that parses back),
/// `None` as nothing, tuples with a TAB between the fields.
///
/// ```
/// use napreduce::output::TextField;
///
/// struct Celsius(f32);
///
/// impl TextField for Celsius {
///     fn write(&self, out: &mut Vec<u8>) {
///         self.0.write(out);
///         out.extend_from_slice(b" C");
///     }
/// }
///
/// let mut line = Vec::new();
/// ("Uppsala", Celsius(-3.5), Some(17)).write(&mut line);
/// assert_eq!(line, b"Uppsala\t-3.5 C\t17");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as text",
    label = "not a text field",
    note = "emit text, bytes, numbers or tuples of these, or implement `TextField` for it"
)]
pub trait TextField {
    /// Whether the text is always empty, so that the TAB before it is omitted. True for `()`.
    const EMPTY: bool = false;

    /// Appends the text to `out`.
    fn write(&self, out: &mut Vec<u8>);
}

impl<T: TextField + ?Sized> TextField for &T {
    const EMPTY: bool = T::EMPTY;

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        T::write(self, out);
    }
}

impl<T: TextField> TextField for Reverse<T> {
    const EMPTY: bool = T::EMPTY;

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

impl<T: TextField> TextField for Option<T> {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        if let Some(field) = self {
            field.write(out);
        }
    }
}

impl TextField for () {
    const EMPTY: bool = true;

    #[inline]
    fn write(&self, _: &mut Vec<u8>) {}
}

impl TextField for bool {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }
}

impl TextField for char {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// Appends one line: the key, a tab and the value; only the key if the type of the value is empty, like `()`.
#[inline]
pub(crate) fn write_line<K: TextField, V: TextField>(key: &K, value: &V, line: &mut Vec<u8>) {
    key.write(line);
    if !V::EMPTY {
        line.push(b'\t');
        value.write(line);
    }
    line.push(b'\n');
}

macro_rules! text_as_bytes {
    ($([$($generic:tt)*] $type:ty),*) => {$(
        impl<$($generic)*> TextField for $type {
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.as_ref());
            }
        }
    )*};
}

text_as_bytes!([] str, [] String, [] [u8], [] Vec<u8>, [const N: usize] [u8; N]);

macro_rules! text_integers {
    ($($type:ty)*) => {$(
        impl TextField for $type {
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(itoa::Buffer::new().format(*self).as_bytes());
            }
        }
    )*};
}

text_integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

macro_rules! text_floats {
    ($($type:ty)*) => {$(
        impl TextField for $type {
            fn write(&self, out: &mut Vec<u8>) {
                // The debug form is the shortest that parses back, with an exponent for very large or small
                // numbers.
                write!(out, "{self:?}").expect("a Vec takes every write");
            }
        }
    )*};
}

text_floats!(f32 f64);

macro_rules! text_tuple {
    ($first:ident $first_value:ident $(, $name:ident $value:ident)*) => {
        impl<$first: TextField $(, $name: TextField)*> TextField for ($first, $($name,)*) {
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                let ($first_value, $($value,)*) = self;
                $first_value.write(out);
                $(
                    out.push(b'\t');
                    $value.write(out);
                )*
            }
        }
    };
}

text_tuple!(A a);
text_tuple!(A a, B b);
text_tuple!(A a, B b, C c);
text_tuple!(A a, B b, C c, D d);
text_tuple!(A a, B b, C c, D d, E e);
text_tuple!(A a, B b, C c, D d, E e, F f);

/// A text field that a list can hold: every one but `u8`, since a list of bytes is written as these bytes.
///
/// ```
/// use napreduce::output::TextField;
///
/// let mut line = Vec::new();
/// vec![("to", 2), ("be", 1)].write(&mut line);
/// assert_eq!(line, b"to\t2\tbe\t1");
/// ```
#[diagnostic::on_unimplemented(
    message = "a list of `{Self}` cannot be written as text",
    label = "not an element of a text list",
    note = "use text, numbers (not `u8`) or tuples of these, or implement `TextElement` for it"
)]
pub trait TextElement: TextField {}

macro_rules! text_elements {
    ($($type:ty)*) => {
        $(impl TextElement for $type {})*
    };
}

text_elements!(str String bool char u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

impl<T: TextElement + ?Sized> TextElement for &T {}
impl<T: TextElement> TextElement for Option<T> {}
impl<T: TextElement> TextElement for Reverse<T> {}
impl<A: TextField, B: TextField> TextElement for (A, B) {}
impl<A: TextField, B: TextField, C: TextField> TextElement for (A, B, C) {}

/// Elements with a TAB between them.
impl<T: TextElement> TextField for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        for (number, element) in self.iter().enumerate() {
            if number > 0 {
                out.push(b'\t');
            }
            element.write(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(field: impl TextField) -> String {
        let mut out = Vec::new();
        field.write(&mut out);
        String::from_utf8(out).expect("only text was written")
    }

    #[test]
    fn fields_are_written_as_text() {
        assert_eq!(text("a b"), "a b");
        assert_eq!(text(String::from("é")), "é");
        assert_eq!(text(b"bytes"), "bytes");
        assert_eq!(text(&b"bytes"[..]), "bytes");
        assert_eq!(text(vec![b'x']), "x");
        assert_eq!(text('ß'), "ß");
        assert_eq!(text(true), "true");
        assert_eq!(
            (text(u64::MAX), text(i8::MIN)),
            ("18446744073709551615".into(), "-128".into())
        );
        assert_eq!(text(i128::MIN), i128::MIN.to_string());
        assert_eq!(text(7usize), "7");
        assert_eq!(text(Reverse(3)), "3");
    }

    #[test]
    fn floats_use_shortest_round_trip_form() {
        assert_eq!(
            (text(0.1f64), text(0.1f32), text(1.0)),
            ("0.1".into(), "0.1".into(), "1.0".into())
        );
        assert_eq!(
            (text(1e300), text(-2.5e-9)),
            ("1e300".into(), "-2.5e-9".into())
        );
        assert_eq!(
            (text(f64::NAN), text(f64::NEG_INFINITY)),
            ("NaN".into(), "-inf".into())
        );
        for value in [f64::MAX, f64::MIN_POSITIVE, 1.0 / 3.0, 123_456_789.0] {
            assert_eq!(text(value).parse(), Ok(value));
        }
    }

    #[test]
    fn tuples_are_tab_separated_and_unit_is_empty() {
        assert_eq!(text(("a", 1, None::<u8>, Some(2.5))), "a\t1\t\t2.5");
        assert_eq!(text((("a", 'b'), "c")), "a\tb\tc");
        assert_eq!(text(()), "");
        assert_eq!(
            (<()>::EMPTY, <&()>::EMPTY, <((),)>::EMPTY, u8::EMPTY),
            (true, true, false, false)
        );
    }
}
