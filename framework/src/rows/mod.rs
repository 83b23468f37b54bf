//! Typed rows: records of table-like files as values of a serde type.
//!
//! ```
//! # #[cfg(feature = "csv")] {
//! use napreduce::testing::JobTest;
//! use napreduce::{Emit, Job};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! struct Flight {
//!     carrier: String,
//!     delay: i64,
//! }
//!
//! let worst = || {
//!     Job::csv::<Flight>()
//!         .map(|flight: Flight, out: &mut Emit<String, i64>| out.emit(&flight.carrier, flight.delay))
//!         .reduce(|carrier, delays, out| out.emit(carrier, delays.owned().max()))
//! };
//! let test = JobTest::new(worst).input("from,carrier,delay\nTXL,LH,7\n\"SXF\",\"U2\",12\nTXL,LH,9\n");
//! assert_eq!(test.run().text(), "LH\t9\nU2\t12\n");
//! # }
//! ```
//!
//! Only the columns that the type names are decoded. A type that borrows is named by
//! [`borrowed!`](crate::borrowed), and its rows allocate nothing. `--bad-input`
//! ([`Skip`](crate::input::Skip)) sets the handling of rows that are not of the type.

#[cfg(feature = "avro")]
mod avro;
mod bad;
#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "json-lines")]
mod json_lines;
#[cfg(feature = "parquet")]
mod parquet;

use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::DeserializeOwned;

#[cfg(feature = "avro")]
pub use self::avro::{AvroRowReader, AvroRows};
#[cfg(feature = "csv")]
pub use self::csv::{Csv, CsvRowReader, CsvRows};
#[cfg(feature = "json-lines")]
pub use self::json_lines::{JsonLines, JsonRowReader, JsonRows};
#[cfg(feature = "parquet")]
pub use self::parquet::{Parquet, ParquetRowReader, ParquetRows};

/// A type of rows: any serde type that owns what it holds, or one that borrows, named by
/// [`borrowed!`](crate::borrowed).
///
/// ```
/// use napreduce::rows::TypedRow;
///
/// fn is_a_row<R: TypedRow>() {}
/// is_a_row::<(String, u64)>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a row",
    label = "not a row",
    note = "derive(serde::Deserialize) for it; a type that borrows is named with `borrowed!`"
)]
pub trait TypedRow: 'static {
    /// One row, which may borrow from the reader's buffer.
    type Of<'a>: Deserialize<'a>;
}

impl<T: DeserializeOwned + 'static> TypedRow for T {
    type Of<'a> = T;
}

/// Rows that borrow, as [`borrowed!`](crate::borrowed) names them.
///
/// ```
/// use napreduce::rows::{BorrowedRow, LendRow, TypedRow};
///
/// fn is_a_row<R: TypedRow>() {}
/// is_a_row::<BorrowedRow<dyn for<'a> LendRow<'a, Of = (&'a str, u64)>>>();
/// ```
pub struct BorrowedRow<F: ?Sized> {
    family: PhantomData<fn(Box<F>)>,
}

/// The type of a row that borrows for a lifetime.
///
/// ```
/// use napreduce::rows::{BorrowedRow, LendRow};
///
/// type Word = BorrowedRow<dyn for<'a> LendRow<'a, Of = &'a str>>;
/// # let _ = std::any::type_name::<Word>();
/// ```
pub trait LendRow<'a> {
    /// The row type.
    type Of: Deserialize<'a>;
}

impl<F: ?Sized + for<'a> LendRow<'a> + 'static> TypedRow for BorrowedRow<F> {
    type Of<'a> = <F as LendRow<'a>>::Of;
}

/// Names a row type with one lifetime, so that its rows borrow from the reader's buffer.
///
/// ```
/// use napreduce::{Job, borrowed};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Flight<'a> {
///     carrier: &'a str,
///     delay: i64,
/// }
///
/// # #[cfg(feature = "csv")] {
/// use napreduce::testing::JobTest;
///
/// let late = || Job::csv::<borrowed!(Flight)>().map_only(|flight, out| out.emit(flight.carrier, flight.delay));
/// assert_eq!(JobTest::new(late).input("carrier,delay\nLH,7\n").run().text(), "LH\t7\n");
/// # }
/// # let _ = std::any::type_name::<borrowed!(Flight)>();
/// # let _ = |flight: Flight| (flight.carrier.len(), flight.delay);
/// ```
#[macro_export]
macro_rules! borrowed {
    ($($row:ident)::+) => {
        $crate::rows::BorrowedRow<dyn for<'row> $crate::rows::LendRow<'row, Of = $($row)::+<'row>>>
    };
}
