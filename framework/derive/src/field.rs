//! Conversion of a field's type to its family (the lifetime becomes `'static`) and to the received type.
//! Fields that own their text are errors.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Error, Type};

/// Returns `tokens` with every lifetime `'from` renamed to `'to`.
pub fn rename_lifetime(tokens: TokenStream, from: &Ident, to: &str) -> TokenStream {
    let mut after_quote = false;
    tokens
        .into_iter()
        .map(|token| {
            let lifetime = std::mem::replace(&mut after_quote, false);
            match token {
                TokenTree::Group(group) => {
                    let mut renamed =
                        Group::new(group.delimiter(), rename_lifetime(group.stream(), from, to));
                    renamed.set_span(group.span());
                    TokenTree::Group(renamed)
                }
                TokenTree::Ident(name) if lifetime && name == *from => {
                    TokenTree::Ident(Ident::new(to, name.span()))
                }
                TokenTree::Punct(mark) => {
                    after_quote = mark.as_char() == '\'';
                    TokenTree::Punct(mark)
                }
                other => other,
            }
        })
        .collect()
}

/// Returns the family of a field of type `field` in a type with lifetime `lifetime`.
pub fn family(field: &Type, lifetime: Option<&Ident>) -> TokenStream {
    match lifetime {
        Some(lifetime) => rename_lifetime(field.to_token_stream(), lifetime, "static"),
        None => field.to_token_stream(),
    }
}

/// Rejects fields that can only be read by allocating; the error shows the valid type.
pub fn check(field: &Type, lifetime: Option<&Ident>) -> Result<(), Error> {
    let lifetime = lifetime.map_or("a".to_owned(), Ident::to_string);
    match owned_text(&field.to_token_stream()) {
        Some((found, span)) => {
            let borrowed = if found == "String" { "str" } else { "[u8]" };
            Err(Error::new(
                span,
                format!(
                    "a field of type {found} would be copied each time it is read; write `&'{lifetime} {borrowed}` \
                     and give the type a lifetime, or make the whole type a value with `Serde<..>`"
                ),
            ))
        }
        None => Ok(()),
    }
}

fn owned_text(tokens: &TokenStream) -> Option<(&'static str, Span)> {
    tokens.clone().into_iter().find_map(|token| match token {
        TokenTree::Group(group) => owned_text(&group.stream()),
        TokenTree::Ident(name) if name == "String" => Some(("String", name.span())),
        TokenTree::Ident(name) if name == "Vec" => Some(("Vec", name.span())),
        _ => None,
    })
}
