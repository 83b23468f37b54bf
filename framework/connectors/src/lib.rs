//! Compressions, container formats of rows, and object stores for jobs: one Cargo feature each.
//!
//! Readers take bytes by offset and return bytes or serde values. Their errors carry the offset; the caller adds the
//! name of the file. The crate contains nothing about jobs or tasks. Without features it has only the modules
//! [`bytes`] and [`compression`], and no dependencies.

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
#[cfg(any(feature = "avro", feature = "json-lines", feature = "parquet"))]
mod strict;
#[cfg(any(feature = "avro", feature = "sequence-file"))]
mod sync;
