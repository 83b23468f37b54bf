//! The formats that are behind features: every split, every preemption, damage, and exchange with other
//! programs.
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
