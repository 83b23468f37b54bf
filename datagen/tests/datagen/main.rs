//! Tests of the generators, the validator and the command line.

#![allow(clippy::unwrap_used)] // every function here is part of a test

mod command;
mod output;
mod rows;
mod tera;
mod text;
mod validate;
