//! What a job can read and write beside lines of text on disk: objects in stores. Each kind is a feature; without features the
//! crate is empty and has no dependencies.

#![warn(missing_docs)]

#[cfg(feature = "stores")]
pub mod stores;
