//! What is generated, what is said of it, and what is refused.

#![allow(clippy::unwrap_used)] // every function here is part of a test

mod command;
mod output;
mod rows;
mod tera;
mod text;
mod validate;
