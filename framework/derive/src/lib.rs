//! `derive(Key)`, `derive(Value)` and `derive(Resumable)` of napreduce. Fields are encoded one after another,
//! enums with a tag byte in front.

mod expand;
mod field;
mod methods;
#[cfg(test)]
mod refusals;
mod resumable;
mod shape;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

use crate::expand::Promise;

/// Derives `napreduce::Key`, and `napreduce::Value` with it, for a struct or enum whose fields are keys.
/// The order is that of `#[derive(PartialOrd)]`: by field, and by variant in the order of declaration.
///
/// The type may have one lifetime for its borrowed fields. Its family is the type with `'static`: `struct
/// Visit<'a> { user: &'a str, time: u64 }` is emitted through an `Emit<Visit<'static>, _>`. A struct of
/// several fields can be grouped by its first ones (`GroupBy`).
///
/// It also derives `codec::Field`, so that `flat_map` can return it; its fields must be `codec::Field`, too.
#[proc_macro_derive(Key)]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input, Promise::Key)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives `napreduce::Value` and `codec::Field` for a struct or enum whose fields are both. `derive(Key)` includes it.
#[proc_macro_derive(Value)]
pub fn derive_value(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input, Promise::Value)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives `napreduce::Resumable` for the struct of a mapper or reducer: each field is saved by its serde
/// type, except those marked `#[resumable(skip)]`.
///
/// The saved bytes begin with the names and types of the fields, and are refused by another struct.
/// `#[resumable(version = 2)]` on the struct also refuses those of earlier versions, for a change that names
/// and types do not show.
#[proc_macro_derive(Resumable, attributes(resumable))]
pub fn derive_resumable(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    resumable::expand(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
