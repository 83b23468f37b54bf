//! `derive(Key)` and `derive(Value)` of napreduce.
//!
//! Owns which types can be derived and the code of their encodings: fields one after another, enums with one
//! tag byte in front. Does not own the traits, their documentation or the encodings of the fields, which are
//! in `napreduce`.

mod expand;
mod field;
mod methods;
#[cfg(test)]
mod refusals;
mod shape;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

use crate::expand::Promise;

/// Derives `napreduce::Key`, and `napreduce::Value` with it, for a struct or enum whose fields are keys.
/// Order is that of `#[derive(PartialOrd)]`: field by field, variants in the order in which they are written.
///
/// The type may have one lifetime, for what its fields borrow. Its family is then the type with `'static`:
/// `struct Visit<'a> { user: &'a str, time: u64 }` is emitted through an `Emit<Visit<'static>, _>`. A struct
/// of several fields can be grouped by its first ones (`GroupBy`).
#[proc_macro_derive(Key)]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input, Promise::Key).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `napreduce::Value` for a struct or enum whose fields are values; see `derive(Key)`, which includes
/// it.
#[proc_macro_derive(Value)]
pub fn derive_value(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input, Promise::Value).unwrap_or_else(syn::Error::into_compile_error).into()
}
