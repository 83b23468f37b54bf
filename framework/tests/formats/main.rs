//! The formats that are features: each at every cut, at every record, damaged, and read and written
//! by other programs.
//!
//! Owns the list of formats. Does not own what all their tests ask of them (`kit`).
#![cfg(feature = "testing")]

#[cfg(feature = "avro")]
mod avro;
mod compressed;
#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "json-lines")]
mod json_lines;
mod kit;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "sequence-file")]
mod sequence_file;
