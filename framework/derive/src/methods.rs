//! The bodies of the generated methods: a match over the variants of an enum; for a struct, a match with one
//! arm.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::shape::{Body, Field, Members, Shape, Style};

/// A struct, or a variant of an enum.
struct Case<'a> {
    /// The tag byte and the name of a variant.
    variant: Option<(u8, &'a Ident)>,
    members: &'a Members<'a>,
}

fn cases<'a>(shape: &'a Shape<'a>) -> Vec<Case<'a>> {
    match &shape.body {
        Body::Struct(members) => vec![Case {
            variant: None,
            members,
        }],
        Body::Enum(variants) => (0..=u8::MAX)
            .zip(variants)
            .map(|(tag, variant)| Case {
                variant: Some((tag, variant.name)),
                members: &variant.members,
            })
            .collect(),
    }
}

impl Case<'_> {
    fn path(&self, of: &Ident) -> TokenStream {
        match self.variant {
            Some((_, name)) => quote!(#of::#name),
            None => quote!(#of),
        }
    }

    fn pattern(&self, of: &Ident) -> TokenStream {
        let path = self.path(of);
        let bound = self.members.fields.iter().map(
            |Field {
                 member, variable, ..
             }| quote!(#member: #variable),
        );
        quote!(#path { #(#bound),* })
    }

    /// Returns the fields, each with whether it is the last of the encoding.
    fn fields(&self) -> impl Iterator<Item = (&Field<'_>, TokenStream)> {
        let count = self.members.fields.len();
        self.members
            .fields
            .iter()
            .enumerate()
            .map(move |(number, field)| {
                (
                    field,
                    if number + 1 == count {
                        quote!(last)
                    } else {
                        quote!(false)
                    },
                )
            })
    }
}

/// Returns the decoding error for a missing or invalid tag of `shape`.
fn tag_expected(shape: &Shape<'_>, cases: usize) -> String {
    format!("the tag of {} (0 to {})", shape.name, cases - 1)
}

pub fn fixed(shape: &Shape<'_>) -> TokenStream {
    match &shape.body {
        Body::Struct(members) => {
            let families = members.fields.iter().map(|field| &field.family);
            quote!(derive_support::fixed_sum_of(&[#(<#families as derive_support::Value>::FIXED),*]))
        }
        Body::Enum(variants)
            if variants
                .iter()
                .all(|variant| variant.members.fields.is_empty()) =>
        {
            quote!(::core::option::Option::Some(1))
        }
        Body::Enum(_) => quote!(::core::option::Option::None),
    }
}

pub fn varies(shape: &Shape<'_>) -> TokenStream {
    let cases = cases(shape);
    let families = cases
        .iter()
        .flat_map(|case| case.members.fields.iter().map(|field| &field.family));
    quote!(false #(|| <#families as derive_support::Value>::VARIES)*)
}

/// Names the type and its fields: `Visit { user: String, time: u64 }`, `Level { Low, High(u64) }`.
pub fn family(shape: &Shape<'_>) -> TokenStream {
    let name = shape.name.to_string();
    let cases = cases(shape).into_iter().map(|case| {
        let variant = match case.variant {
            Some((_, name)) => name.to_string(),
            None => String::new(),
        };
        let fields = case
            .members
            .fields
            .iter()
            .map(|Field { member, family, .. }| {
                let member = match case.members.style {
                    Style::Named => member.to_string(),
                    Style::Tuple | Style::Unit => String::new(),
                };
                quote!((#member, <#family as derive_support::Value>::family()))
            });
        quote!((#variant, ::std::vec![#(#fields),*]))
    });
    match &shape.body {
        Body::Struct(_) => quote!(derive_support::struct_family(#name, #(#cases),*)),
        Body::Enum(_) => quote!(derive_support::enum_family(#name, ::std::vec![#(#cases),*])),
    }
}

/// Encodes `value`, a `name`, with the method `encode` that `of` (`Value` or `Key`) gives to each field.
pub fn encode(
    shape: &Shape<'_>,
    name: &Ident,
    of: TokenStream,
    encode: TokenStream,
) -> TokenStream {
    let cases = cases(shape);
    let arms = cases.iter().map(|case| {
        let pattern = case.pattern(name);
        let tag = case.variant.map(|(tag, _)| quote!(out.push(#tag);));
        let fields = case.fields().map(
            |(
                Field {
                    family, variable, ..
                },
                last,
            )| {
                quote!(<#family as derive_support::#of>::#encode(#variable, #last, out);)
            },
        );
        quote!(#pattern => { #tag #(#fields)* })
    });
    quote!(match value { #(#arms)* })
}

pub fn to_owned(shape: &Shape<'_>, owned: &Ident) -> TokenStream {
    if shape.lifetime.is_none() {
        return quote!(value);
    }
    let cases = cases(shape);
    let arms = cases.iter().map(|case| {
        let pattern = case.pattern(shape.name);
        let path = case.path(owned);
        let fields = case.members.fields.iter().map(
            |Field {
                 member,
                 variable,
                 family,
                 ..
             }| {
                quote!(#member: <#family as derive_support::Value>::to_owned(#variable))
            },
        );
        quote!(#pattern => #path { #(#fields),* },)
    });
    quote!(match value { #(#arms)* })
}

/// Adds up the heap memory of the fields.
pub fn heap_bytes(shape: &Shape<'_>, owned: &Ident) -> TokenStream {
    let cases = cases(shape);
    let arms = cases.iter().map(|case| {
        let pattern = case.pattern(owned);
        let fields = case.members.fields.iter().map(
            |Field {
                 variable, family, ..
             }| { quote!(+ <#family as derive_support::Value>::heap_bytes(#variable)) },
        );
        quote!(#pattern => 0 #(#fields)*,)
    });
    quote!(match value { #(#arms)* })
}

/// Lends each field. References are copied; they may be to arrays, whose own family is by value.
pub fn lend(shape: &Shape<'_>) -> TokenStream {
    let cases = cases(shape);
    let arms = cases.iter().map(|case| {
        let pattern = case.pattern(shape.name);
        let path = case.path(shape.name);
        let fields = case.members.fields.iter().map(
            |Field {
                 member,
                 variable,
                 is_reference,
                 ..
             }| match is_reference {
                true => quote!(#member: *#variable),
                false => quote!(#member: derive_support::Field::lend(#variable)),
            },
        );
        quote!(#pattern => #path { #(#fields),* },)
    });
    quote!(match self { #(#arms)* })
}

pub fn decode(shape: &Shape<'_>) -> TokenStream {
    let cases = cases(shape);
    let value = |case: &Case<'_>| {
        let path = case.path(shape.name);
        let fields = case.fields().map(|(Field { member, family, .. }, last)| {
            quote!(#member: derive_support::decode_field::<#family>(input, whole, #last, scratch)?)
        });
        quote!(::core::result::Result::Ok(#path { #(#fields),* }))
    };
    match cases.as_slice() {
        [case @ Case { variant: None, .. }] => {
            let value = value(case);
            quote!(let whole = input.len(); #value)
        }
        cases => {
            let expected = tag_expected(shape, cases.len());
            let arms = cases.iter().map(|case| {
                let tag = case.variant.map(|(tag, _)| tag);
                let value = value(case);
                quote!(::core::option::Option::Some(#tag) => #value,)
            });
            quote! {
                let whole = input.len();
                match derive_support::take_tag(input) {
                    #(#arms)*
                    _ => ::core::result::Result::Err(derive_support::DecodeError::new(#expected, 0)),
                }
            }
        }
    }
}

pub fn measure(shape: &Shape<'_>) -> TokenStream {
    let cases = cases(shape);
    let measured = |case: &Case<'_>| {
        let fields = case.fields().map(|(Field { family, .. }, last)| {
            quote!(derive_support::measure_field::<#family>(bytes, &mut at, #last, flip)?;)
        });
        quote!(#(#fields)*)
    };
    match cases.as_slice() {
        [case @ Case { variant: None, .. }] => {
            let measured = measured(case);
            quote! {
                let mut at = 0;
                #measured
                ::core::result::Result::Ok(at)
            }
        }
        cases => {
            let expected = tag_expected(shape, cases.len());
            let arms = cases.iter().map(|case| {
                let tag = case.variant.map(|(tag, _)| tag);
                let measured = measured(case);
                quote!(::core::option::Option::Some(#tag) => { #measured })
            });
            quote! {
                let mut at = 1;
                match bytes.first().map(|tag| tag ^ flip) {
                    #(#arms)*
                    _ => return ::core::result::Result::Err(derive_support::DecodeError::new(#expected, 0)),
                }
                ::core::result::Result::Ok(at)
            }
        }
    }
}
