//! Values that can be added, for `sum` and `mean`.

use crate::codec::{DecodeError, Scratch, Value};

/// A value that [`sum`](crate::builder::MapStage::sum) adds: a number, or a tuple of numbers.
///
/// Integers are added in any order, and floats in the order of the input, since another order would round
/// differently. Sums are exact until they are finished: they are made in [`Total`](Sum::Total), which holds the
/// sum of any values, so whether a sum overflows does not depend on the order of the values or on the
/// splits of the input.
///
/// ```
/// use napreduce::Job;
/// use napreduce::testing::JobTest;
///
/// let sums = || Job::text().flat_map(|line: &str| Some(("all", (line.len() as u64, 1u64)))).sum();
/// assert_eq!(JobTest::new(sums).input("to\nbe\nnot\n").run().text(), "all\t7\t3\n");
/// ```
#[diagnostic::on_unimplemented(
    message = "values of type `{Self}` cannot be added",
    label = "not a number",
    note = "emit numbers or tuples of numbers, or use `combine` with your own fold"
)]
pub trait Sum: Value<Owned = Self> + Copy + Send + Sync {
    /// Whether the result depends on the order.
    const IS_ORDERED: bool;

    /// The type of unfinished sums: `i128` for signed integers of up to 64 bits, [`WideInteger`] for `i128`.
    /// Unsigned integers need no wider type, because a sum that overflows midway overflows at the end, too.
    type Total: Sum;

    /// Returns the sum of no values.
    fn zero() -> Self;

    /// Adds one value. As a combiner it is checked in every build, unlike `+=`, which wraps in a release build
    /// without `overflow-checks`:
    ///
    /// ```
    /// use napreduce::builder::Sum;
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Emit, Job};
    ///
    /// let lengths = || {
    ///     Job::text()
    ///         .map(|line: &str, out: &mut Emit<String, u64>| out.emit(&line[..1], line.len() as u64))
    ///         .combine(Sum::add)
    ///         .reduce(|letter, lengths, out| out.emit(letter, lengths.sum()))
    /// };
    /// assert_eq!(JobTest::new(lengths).input("to\nbe\ntree\n").run().text(), "b\t2\nt\t6\n");
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if an integer overflows, which fails the task.
    fn add(&mut self, more: Self);

    /// Converts a value for an unfinished sum.
    fn widen(self) -> Self::Total;

    /// Finishes a sum.
    ///
    /// # Panics
    ///
    /// Panics if the sum is outside the range of the type, which fails the task.
    fn narrow(total: Self::Total) -> Self;
}

/// A number, of which there is a [`mean`](crate::builder::MapStage::mean).
///
/// ```
/// use napreduce::builder::Number;
///
/// assert_eq!((i32::exact(-7), i64::ratio(-7, 2), f64::ratio(1.0, 4)), (-7, -3.5, 0.25));
/// ```
#[diagnostic::on_unimplemented(
    message = "values of type `{Self}` have no mean",
    label = "not a number",
    note = "emit integers or floats"
)]
pub trait Number: Sum {
    /// The type of the sum of many: an integer that holds it, or `f64` for floats.
    type Exact: Sum;

    /// Converts it for a sum.
    fn exact(self) -> Self::Exact;

    /// Divides a sum by the number of its values.
    fn ratio(sum: Self::Exact, count: u64) -> f64;
}

/// Integers whose sums are made in `$total`, and their means of sums in `$exact`.
macro_rules! integers {
    ($total:ty, $exact:ty, $to_float:path: $($type:ty)*) => {$(
        impl Sum for $type {
            const IS_ORDERED: bool = false;

            type Total = $total;

            fn zero() -> Self {
                0
            }

            #[inline]
            fn add(&mut self, more: Self) {
                *self = self.checked_add(more).unwrap_or_else(|| overflow(stringify!($type)));
            }

            #[inline]
            fn widen(self) -> $total {
                <$total>::from(self)
            }

            #[inline]
            fn narrow(total: $total) -> Self {
                Self::try_from(total).unwrap_or_else(|_| overflow(stringify!($type)))
            }
        }

        impl Number for $type {
            type Exact = $exact;

            #[inline]
            fn exact(self) -> $exact {
                <$exact>::from(self)
            }

            fn ratio(sum: $exact, count: u64) -> f64 {
                $to_float(sum) / count as f64
            }
        }
    )*};
}

integers!(u64, i128, float: u8 u16 u32 u64);
integers!(i128, i128, float: i8 i16 i32 i64);
integers!(u128, WideInteger, WideInteger::float: u128);
integers!(WideInteger, WideInteger, WideInteger::float: i128);

fn float(sum: i128) -> f64 {
    sum as f64
}

/// An integer of 192 bits, which holds the sum of any `i128` or `u128` of a job.
///
/// ```
/// use napreduce::builder::{Sum, WideInteger};
///
/// let mut sum = WideInteger::zero();
/// sum.add(i128::MAX.widen());
/// sum.add(1i128.widen());
/// sum.add((-1i128).widen());
/// assert_eq!(i128::narrow(sum), i128::MAX);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WideInteger {
    /// In two's complement, as if `low` followed.
    high: i64,
    low: u128,
}

impl From<i128> for WideInteger {
    fn from(value: i128) -> WideInteger {
        let high = if value < 0 { -1 } else { 0 };
        WideInteger {
            high,
            low: value as u128,
        }
    }
}

impl From<u128> for WideInteger {
    fn from(value: u128) -> WideInteger {
        WideInteger {
            high: 0,
            low: value,
        }
    }
}

impl TryFrom<WideInteger> for i128 {
    /// The value that is too large.
    type Error = WideInteger;

    fn try_from(wide: WideInteger) -> Result<i128, WideInteger> {
        let value = wide.low as i128;
        if WideInteger::from(value) == wide {
            Ok(value)
        } else {
            Err(wide)
        }
    }
}

impl WideInteger {
    fn float(self) -> f64 {
        match i128::try_from(self) {
            Ok(value) => value as f64,
            Err(WideInteger { high, low }) => high as f64 * 2f64.powi(128) + low as f64,
        }
    }
}

impl Value for WideInteger {
    type Ref<'a> = WideInteger;
    type Owned = WideInteger;
    const FIXED: Option<usize> = <(i64, u128)>::FIXED;

    fn encode(value: WideInteger, last: bool, out: &mut Vec<u8>) {
        <(i64, u128)>::encode((value.high, value.low), last, out);
    }

    fn encode_owned(owned: &WideInteger, last: bool, out: &mut Vec<u8>) {
        WideInteger::encode(*owned, last, out);
    }

    fn decode<'a>(
        input: &mut &'a [u8],
        last: bool,
        scratch: &'a Scratch,
    ) -> Result<WideInteger, DecodeError> {
        let (high, low) = <(i64, u128)>::decode(input, last, scratch)?;
        Ok(WideInteger { high, low })
    }

    fn measure(bytes: &[u8], last: bool, flip: u8) -> Result<usize, DecodeError> {
        <(i64, u128)>::measure(bytes, last, flip)
    }

    fn to_owned(value: WideInteger) -> WideInteger {
        value
    }
}

impl Sum for WideInteger {
    const IS_ORDERED: bool = false;

    type Total = WideInteger;

    fn zero() -> WideInteger {
        WideInteger { high: 0, low: 0 }
    }

    fn add(&mut self, more: WideInteger) {
        let (low, carries) = self.low.overflowing_add(more.low);
        let high = self.high.checked_add(more.high);
        let high = high.and_then(|high| high.checked_add(i64::from(carries)));
        self.high = high.unwrap_or_else(|| overflow("192 bits"));
        self.low = low;
    }

    fn widen(self) -> WideInteger {
        self
    }

    fn narrow(total: WideInteger) -> WideInteger {
        total
    }
}

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Sum for $type {
            const IS_ORDERED: bool = true;

            type Total = $type;

            fn zero() -> Self {
                0.0
            }

            #[inline]
            fn add(&mut self, more: Self) {
                *self += more;
            }

            #[inline]
            fn widen(self) -> $type {
                self
            }

            #[inline]
            fn narrow(total: $type) -> $type {
                total
            }
        }

        impl Number for $type {
            type Exact = f64;

            #[inline]
            fn exact(self) -> f64 {
                f64::from(self)
            }

            fn ratio(sum: f64, count: u64) -> f64 {
                sum / count as f64
            }
        }
    )*};
}

floats!(f32 f64);

macro_rules! tuples {
    ($($name:ident $number:tt)*) => {
        impl<$($name: Sum),*> Sum for ($($name,)*) {
            const IS_ORDERED: bool = $($name::IS_ORDERED)||*;

            type Total = ($($name::Total,)*);

            fn zero() -> Self {
                ($($name::zero(),)*)
            }

            #[inline]
            fn add(&mut self, more: Self) {
                $(self.$number.add(more.$number);)*
            }

            #[inline]
            fn widen(self) -> Self::Total {
                ($(self.$number.widen(),)*)
            }

            #[inline]
            fn narrow(total: Self::Total) -> Self {
                ($($name::narrow(total.$number),)*)
            }
        }
    };
}

tuples!(A 0 B 1);
tuples!(A 0 B 1 C 2);
tuples!(A 0 B 1 C 2 D 3);
tuples!(A 0 B 1 C 2 D 3 E 4);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5);

#[cold]
fn overflow(type_name: &str) -> ! {
    panic!("the sum exceeds the range of {type_name}; emit values of a wider type")
}
