//! The formats that are features: each at every cut, at every record, damaged, and read and written by other programs.
//!
//! Owns the list of formats. Does not own what all their tests ask of them (`kit`).
#![cfg(feature = "testing")]

#[cfg(feature = "avro")]
mod avro;
#[cfg_attr(
    not(all(feature = "bzip2", feature = "lz4", feature = "snappy", feature = "xz")),
    allow(dead_code, unused_imports, reason = "what is for formats that are not compiled")
)]
mod compressed;
#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "json-lines")]
mod json_lines;
mod kit;
#[cfg(feature = "sequence-file")]
mod sequence_file;
