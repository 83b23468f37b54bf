//! The generated implementations of `Value`, `Key` and `GroupBy`, and the owned companion of a type that
//! borrows.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{DeriveInput, Error, Lifetime};

use crate::methods;
use crate::shape::{self, Body, Members, Shape, Style};

/// The trait to derive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    Key,
    Value,
}

/// Tuples are keys up to this length, and so are the prefixes to group by.
const PREFIX_MAX: usize = 6;

pub fn expand(input: &DeriveInput, promise: Promise) -> Result<TokenStream, Error> {
    let shape = shape::read(input)?;
    let owned = owned_type(&shape);
    let value = value_impl(&shape);
    let field = field_impl(&shape);
    let key = if promise == Promise::Key {
        key_impl(&shape)
    } else {
        TokenStream::new()
    };
    Ok(quote! {
        const _: () = {
            use ::napreduce::codec::derive_support;
            #owned
            #value
            #field
            #key
        };
    })
}

/// Returns the type with its lifetime replaced by `lifetime`.
fn with_lifetime(shape: &Shape<'_>, lifetime: &str) -> TokenStream {
    let name = shape.name;
    let lifetime = Lifetime::new(lifetime, name.span());
    match shape.lifetime {
        Some(_) => quote!(#name<#lifetime>),
        None => quote!(#name),
    }
}

/// Returns the name of the owned form; a type that borrows nothing is its own.
fn owned_name(shape: &Shape<'_>) -> Ident {
    match shape.lifetime {
        Some(_) => format_ident!("{}Owned", shape.name),
        None => shape.name.clone(),
    }
}

/// Returns the same type with owned fields, for one that borrows. A combiner folds it, by the same field
/// names.
fn owned_type(shape: &Shape<'_>) -> TokenStream {
    if shape.lifetime.is_none() {
        return TokenStream::new();
    }
    let name = owned_name(shape);
    let visibility = shape.visibility;
    let body = match &shape.body {
        Body::Struct(members) => {
            let fields = owned_members(members);
            let end = (members.style != Style::Named).then(|| quote!(;));
            quote!(#visibility struct #name #fields #end)
        }
        Body::Enum(variants) => {
            let variants = variants.iter().map(|variant| {
                let name = variant.name;
                let fields = owned_members(&variant.members);
                quote!(#name #fields)
            });
            quote!(#visibility enum #name { #(#variants),* })
        }
    };
    quote! {
        #[doc(hidden)]
        #[allow(missing_docs, dead_code)]
        #body
    }
}

fn owned_members(members: &Members<'_>) -> TokenStream {
    let declared = members.fields.iter().map(|field| {
        let member = &field.member;
        let visibility = field.visibility;
        let family = &field.family;
        let name = (members.style == Style::Named).then(|| quote!(#member:));
        quote!(#visibility #name <#family as derive_support::Value>::Owned)
    });
    match members.style {
        Style::Named => quote!({ #(#declared),* }),
        Style::Tuple => quote!(( #(#declared),* )),
        Style::Unit => TokenStream::new(),
    }
}

fn value_impl(shape: &Shape<'_>) -> TokenStream {
    let family = with_lifetime(shape, "'static");
    let reference = with_lifetime(shape, "'record");
    let any = with_lifetime(shape, "'_");
    let owned = owned_name(shape);
    let fixed = methods::fixed(shape);
    let varies = methods::varies(shape);
    let encode = methods::encode(shape, shape.name, quote!(Value), quote!(encode));
    let encode_owned = methods::encode(shape, &owned, quote!(Value), quote!(encode_owned));
    let decode = methods::decode(shape);
    let measure = methods::measure(shape);
    let to_owned = methods::to_owned(shape, &owned);
    let heap_bytes = methods::heap_bytes(shape, &owned);
    let family_name = methods::family(shape);
    quote! {
        #[automatically_derived]
        #[allow(unused_variables, unused_mut)]
        impl derive_support::Value for #family {
            type Ref<'record> = #reference;
            type Owned = #owned;
            const FIXED: ::core::option::Option<usize> = #fixed;
            const VARIES: bool = #varies;

            #[inline]
            fn encode(value: #any, last: bool, out: &mut ::std::vec::Vec<u8>) {
                #encode
            }

            #[inline]
            fn encode_owned(value: &#owned, last: bool, out: &mut ::std::vec::Vec<u8>) {
                #encode_owned
            }

            #[inline]
            fn decode<'record>(
                input: &mut &'record [u8],
                last: bool,
                scratch: &'record derive_support::Scratch,
            ) -> ::core::result::Result<#reference, derive_support::DecodeError> {
                #decode
            }

            #[inline]
            fn measure(
                bytes: &[u8],
                last: bool,
                flip: u8,
            ) -> ::core::result::Result<usize, derive_support::DecodeError> {
                #measure
            }

            #[inline]
            fn to_owned(value: #any) -> #owned {
                #to_owned
            }

            #[inline]
            fn heap_bytes(value: &#owned) -> usize {
                #heap_bytes
            }

            fn family() -> ::std::string::String {
                #family_name
            }
        }
    }
}

/// The type as an item of a map: it travels as itself.
fn field_impl(shape: &Shape<'_>) -> TokenStream {
    let family = with_lifetime(shape, "'static");
    let any = with_lifetime(shape, "'_");
    let lend = methods::lend(shape);
    quote! {
        #[automatically_derived]
        impl derive_support::Field for #any {
            type Family = #family;

            #[inline]
            fn lend(&self) -> <#family as derive_support::Value>::Ref<'_> {
                #lend
            }
        }
    }
}

fn key_impl(shape: &Shape<'_>) -> TokenStream {
    let family = with_lifetime(shape, "'static");
    let any = with_lifetime(shape, "'_");
    let fields: Vec<_> = match &shape.body {
        Body::Struct(members) => members.fields.iter().map(|field| &field.family).collect(),
        Body::Enum(variants) => variants
            .iter()
            .flat_map(|variant| &variant.members.fields)
            .map(|field| &field.family)
            .collect(),
    };
    let grouping = match &shape.body {
        Body::Struct(_) => grouping_impls(&family, &fields),
        Body::Enum(_) => TokenStream::new(),
    };
    let encode_key = methods::encode(shape, shape.name, quote!(Key), quote!(encode_key));
    quote! {
        #[automatically_derived]
        #[allow(unused_variables)]
        impl derive_support::Key for #family {
            #[inline]
            fn encode_key(value: #any, last: bool, out: &mut ::std::vec::Vec<u8>) {
                #encode_key
            }
        }

        #[automatically_derived]
        impl derive_support::KeyAlone for #any {}

        const _: () = {
            const fn each_field_is_a_key<K: derive_support::Key>() {}
            #(each_field_is_a_key::<#fields>();)*
        };

        #grouping
    }
}

/// A struct can be grouped by its first field, or by a tuple of its first fields.
fn grouping_impls(family: &TokenStream, fields: &[&TokenStream]) -> TokenStream {
    let prefixes = (1..fields.len())
        .take(PREFIX_MAX)
        .map(|length| match &fields[..length] {
            [first] => quote!(#first),
            first => quote!((#(#first),*)),
        });
    quote! {
        #(
            #[automatically_derived]
            impl derive_support::GroupBy<#prefixes> for #family {}
        )*
    }
}
