//! The generated implementation of `Resumable`: a header that describes the struct, then its fields in order.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DataStruct, DeriveInput, Error, Field, Index, LitInt, Type};

/// A field of the struct.
struct StateField<'a> {
    /// Its name or number, after `self.`.
    member: TokenStream,
    declared: &'a Field,
    is_skipped: bool,
}

pub fn expand(input: &DeriveInput) -> Result<TokenStream, Error> {
    let version = version(input)?;
    let fields = fields(structure(input)?)?;
    let saved: Vec<_> = fields.iter().filter(|field| !field.is_skipped).collect();
    let members: Vec<_> = saved.iter().map(|field| &field.member).collect();
    let variables: Vec<_> = (0..saved.len())
        .map(|number| format_ident!("field_{number}"))
        .collect();
    let names: Vec<_> = members.iter().map(|member| member.to_string()).collect();
    let shape = shape(input, version, &saved);

    let name = &input.ident;
    let mut generics = input.generics.clone();
    for field in saved
        .iter()
        .filter(|field| is_generic(field.declared.ty.to_token_stream(), input))
    {
        let declared = &field.declared.ty;
        let condition = syn::parse2(quote!(#declared: state_support::StateField))?;
        generics.make_where_clause().predicates.push(condition);
    }
    // The error for a field that cannot be saved points to its type.
    let writes = saved.iter().zip(&names).map(|(field, name)| {
        let member = &field.member;
        quote_spanned!(field.declared.ty.span()=> state_support::write_field(#name, &self.#member, saved)?;)
    });
    let reads = saved
        .iter()
        .zip(&names)
        .zip(&variables)
        .map(|((field, name), variable)| {
            let declared = &field.declared.ty;
            quote_spanned!(declared.span()=>
                let #variable: #declared = state_support::read_field(#shape, #name, &mut rest)?;
            )
        });
    let (parameters, arguments, conditions) = generics.split_for_impl();
    Ok(quote! {
        const _: () = {
            use ::napreduce::state_support;

            #[automatically_derived]
            #[allow(unused_qualifications)]
            impl #parameters state_support::Resumable for #name #arguments #conditions {
                fn save_state(
                    &self,
                    saved: &mut ::std::vec::Vec<u8>,
                ) -> ::core::result::Result<(), state_support::TaskError> {
                    state_support::write_shape(#shape, saved);
                    #(#writes)*
                    ::core::result::Result::Ok(())
                }

                fn restore_state(
                    &mut self,
                    saved: &[u8],
                ) -> ::core::result::Result<(), state_support::TaskError> {
                    let mut rest = state_support::read_shape(#shape, saved)?;
                    #(#reads)*
                    state_support::read_end(#shape, rest)?;
                    #(self.#members = #variables;)*
                    ::core::result::Result::Ok(())
                }
            }
        };
    })
}

/// Returns whether a type names one of the type parameters of the struct.
fn is_generic(declared: TokenStream, input: &DeriveInput) -> bool {
    declared.into_iter().any(|token| match token {
        TokenTree::Group(group) => is_generic(group.stream(), input),
        TokenTree::Ident(name) => input
            .generics
            .type_params()
            .any(|parameter| parameter.ident == name),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

fn structure(input: &DeriveInput) -> Result<&DataStruct, Error> {
    let message =
        "Resumable is derived for structs; make the state a struct with this type as a field";
    match &input.data {
        Data::Struct(data) => Ok(data),
        Data::Enum(data) => Err(Error::new_spanned(data.enum_token, message)),
        Data::Union(data) => Err(Error::new_spanned(data.union_token, message)),
    }
}

/// Returns the number of `#[resumable(version = 2)]` on the struct; 1 without it.
fn version(input: &DeriveInput) -> Result<u32, Error> {
    let mut version = 1;
    for attribute in input
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("resumable"))
    {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("version") {
                return Err(meta.error("expected `version = NUMBER`; `skip` belongs to a field"));
            }
            version = meta.value()?.parse::<LitInt>()?.base10_parse()?;
            Ok(())
        })?;
    }
    Ok(version)
}

fn fields(structure: &DataStruct) -> Result<Vec<StateField<'_>>, Error> {
    let mut fields = Vec::new();
    for (number, declared) in structure.fields.iter().enumerate() {
        let member = match &declared.ident {
            Some(name) => name.to_token_stream(),
            None => Index::from(number).to_token_stream(),
        };
        fields.push(StateField {
            member,
            declared,
            is_skipped: is_skipped(declared)?,
        });
    }
    Ok(fields)
}

/// Returns whether a field has `#[resumable(skip)]`.
fn is_skipped(declared: &Field) -> Result<bool, Error> {
    let mut is_skipped = false;
    for attribute in declared
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("resumable"))
    {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("skip") {
                return Err(meta.error("expected `skip`; `version = NUMBER` belongs to the struct"));
            }
            is_skipped = true;
            Ok(())
        })?;
    }
    Ok(is_skipped)
}

/// Returns the header of the saved bytes, which readers compare and errors show: `Ledger v1 { sum: u64 }`.
fn shape(input: &DeriveInput, version: u32, saved: &[&StateField<'_>]) -> String {
    let fields: Vec<_> = saved
        .iter()
        .map(|field| format!("{}: {}", field.member, type_text(&field.declared.ty)))
        .collect();
    format!("{} v{version} {{ {} }}", input.ident, fields.join(", "))
}

/// Returns a type as people write it: tokens are printed with spaces around `<` and `::`.
fn type_text(declared: &Type) -> String {
    let mut text = declared.to_token_stream().to_string();
    for (printed, written) in [
        (" :: ", "::"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
    ] {
        text = text.replace(printed, written);
    }
    text
}
