//! Values that can be added, for the folds `sum` and `mean`.

use crate::codec::Value;

/// A value that [`sum`](super::MapStage::sum) adds: a number, or a tuple of numbers.
///
/// Integers are added in any order. Floats are added in the order of the input, since another order would round
/// differently.
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

    /// Returns the sum of no values.
    fn zero() -> Self;

    /// Adds one value.
    ///
    /// # Panics
    ///
    /// Panics if an integer overflows, which fails the task.
    fn add(&mut self, more: Self);
}

/// A number, of which there is a [`mean`](super::MapStage::mean).
///
/// ```
/// use napreduce::builder::Number;
///
/// assert_eq!((i32::exact(-7), i128::ratio(-7, 2), f64::ratio(1.0, 4)), (-7, -3.5, 0.25));
/// ```
#[diagnostic::on_unimplemented(
    message = "values of type `{Self}` have no mean",
    label = "not a number",
    note = "emit integers or floats"
)]
pub trait Number: Sum {
    /// The type of the sum of many: `i128` for integers, `f64` for floats.
    type Total: Sum + Number;

    /// Converts it for a sum.
    fn exact(self) -> Self::Total;

    /// Divides a sum by the number of its values.
    fn ratio(total: Self::Total, count: u64) -> f64;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Sum for $type {
            const IS_ORDERED: bool = false;

            fn zero() -> Self {
                0
            }

            #[inline]
            fn add(&mut self, more: Self) {
                *self = self.checked_add(more).unwrap_or_else(|| overflow(stringify!($type)));
            }
        }

        impl Number for $type {
            type Total = i128;

            #[inline]
            fn exact(self) -> i128 {
                i128::try_from(self).unwrap_or_else(|_| overflow("i128"))
            }

            fn ratio(total: i128, count: u64) -> f64 {
                total as f64 / count as f64
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Sum for $type {
            const IS_ORDERED: bool = true;

            fn zero() -> Self {
                0.0
            }

            #[inline]
            fn add(&mut self, more: Self) {
                *self += more;
            }
        }

        impl Number for $type {
            type Total = f64;

            #[inline]
            fn exact(self) -> f64 {
                f64::from(self)
            }

            fn ratio(total: f64, count: u64) -> f64 {
                total / count as f64
            }
        }
    )*};
}

floats!(f32 f64);

macro_rules! tuples {
    ($($name:ident $number:tt)*) => {
        impl<$($name: Sum),*> Sum for ($($name,)*) {
            const IS_ORDERED: bool = $($name::IS_ORDERED)||*;

            fn zero() -> Self {
                ($($name::zero(),)*)
            }

            #[inline]
            fn add(&mut self, more: Self) {
                $(self.$number.add(more.$number);)*
            }
        }
    };
}

tuples!(A 0 B 1);
tuples!(A 0 B 1 C 2);
tuples!(A 0 B 1 C 2 D 3);

#[cold]
fn overflow(type_name: &str) -> ! {
    panic!("the sum exceeds the range of {type_name}; emit values of a wider type")
}
