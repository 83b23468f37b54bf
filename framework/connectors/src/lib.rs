//! What a job can read and write beside plain text on disk: compressions, container files of rows, and objects in stores.
//!
//! Each is a feature. Readers take bytes that are read at offsets and give bytes or serde values; they report errors by
//! offset, and the caller adds the name of the file. Nothing here knows jobs or tasks. Without features there is only
//! the seam, [`bytes`] and [`compression`], and there are no dependencies.

#![warn(missing_docs)]

#[cfg(feature = "avro")]
pub mod avro;
pub mod bytes;
#[cfg(any(feature = "csv", feature = "parquet"))]
mod columns;
pub mod compression;
#[cfg(any(feature = "avro", feature = "sequence-file"))]
mod content;
#[cfg(feature = "csv")]
pub mod csv;
pub mod decode;
#[cfg(feature = "json-lines")]
pub mod json_lines;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(any(feature = "avro", feature = "parquet"))]
pub mod row;
#[cfg(feature = "sequence-file")]
pub mod sequence_file;
#[cfg(feature = "stores")]
pub mod stores;
