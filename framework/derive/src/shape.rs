//! The checked description of a struct or enum, and the errors for unsupported ones.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident};
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Index, Visibility};

use crate::field;

/// Maximum number of variants with a tag of one byte.
const VARIANTS_MAX: usize = 256;

/// A struct or enum that can be derived.
pub struct Shape<'a> {
    pub name: &'a Ident,
    pub visibility: &'a Visibility,
    pub lifetime: Option<&'a Ident>,
    pub body: Body<'a>,
}

pub enum Body<'a> {
    Struct(Members<'a>),
    Enum(Vec<Variant<'a>>),
}

pub struct Variant<'a> {
    pub name: &'a Ident,
    pub members: Members<'a>,
}

/// The fields of a struct or of a variant, and their brackets.
pub struct Members<'a> {
    pub style: Style,
    pub fields: Vec<Field<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Named,
    Tuple,
    Unit,
}

pub struct Field<'a> {
    /// The field's name or number, for a pattern or expression with braces.
    pub member: TokenStream,
    /// The variable of the field in generated code.
    pub variable: Ident,
    pub visibility: &'a Visibility,
    /// The type by which it is encoded.
    pub family: TokenStream,
    pub is_reference: bool,
}

pub fn read(input: &DeriveInput) -> Result<Shape<'_>, Error> {
    let lifetime = lifetime(input)?;
    let body = match &input.data {
        Data::Struct(data) => Body::Struct(members(&data.fields, lifetime)?),
        Data::Enum(data) => Body::Enum(variants(input, data, lifetime)?),
        Data::Union(data) => {
            return Err(Error::new_spanned(
                data.union_token,
                "a union cannot be decoded; use a struct or an enum",
            ));
        }
    };
    Ok(Shape {
        name: &input.ident,
        visibility: &input.vis,
        lifetime,
        body,
    })
}

fn lifetime(input: &DeriveInput) -> Result<Option<&Ident>, Error> {
    let mut found = None;
    for parameter in &input.generics.params {
        match parameter {
            GenericParam::Lifetime(lifetime) if found.is_none() => {
                found = Some(&lifetime.lifetime.ident)
            }
            GenericParam::Lifetime(_) => {
                return Err(Error::new_spanned(
                    parameter,
                    "keys and values can have one lifetime; use the same one for all fields",
                ));
            }
            GenericParam::Type(_) | GenericParam::Const(_) => {
                return Err(Error::new_spanned(
                    parameter,
                    "generic keys and values cannot be derived; derive for a concrete type, or use a tuple",
                ));
            }
        }
    }
    Ok(found)
}

fn variants<'a>(
    input: &'a DeriveInput,
    data: &'a syn::DataEnum,
    lifetime: Option<&Ident>,
) -> Result<Vec<Variant<'a>>, Error> {
    if data.variants.is_empty() {
        return Err(Error::new_spanned(
            &input.ident,
            "an enum without variants has no values",
        ));
    }
    if data.variants.len() > VARIANTS_MAX {
        return Err(Error::new_spanned(
            &input.ident,
            format!(
                "{} variants do not fit in the tag byte (limit {VARIANTS_MAX})",
                data.variants.len()
            ),
        ));
    }
    data.variants
        .iter()
        .map(|variant| {
            if let Some((_, discriminant)) = &variant.discriminant {
                return Err(Error::new_spanned(
                    discriminant,
                    "variants sort in declaration order; remove the discriminant",
                ));
            }
            Ok(Variant {
                name: &variant.ident,
                members: members(&variant.fields, lifetime)?,
            })
        })
        .collect()
}

fn members<'a>(declared: &'a Fields, lifetime: Option<&Ident>) -> Result<Members<'a>, Error> {
    let style = match declared {
        Fields::Named(_) => Style::Named,
        Fields::Unnamed(_) => Style::Tuple,
        Fields::Unit => Style::Unit,
    };
    let fields = declared
        .iter()
        .enumerate()
        .map(|(number, field)| read_field(field, number, lifetime));
    Ok(Members {
        style,
        fields: fields.collect::<Result<_, _>>()?,
    })
}

fn read_field<'a>(
    declared: &'a syn::Field,
    number: usize,
    lifetime: Option<&Ident>,
) -> Result<Field<'a>, Error> {
    field::check(&declared.ty, lifetime)?;
    Ok(Field {
        member: match &declared.ident {
            Some(name) => name.to_token_stream(),
            None => Index::from(number).to_token_stream(),
        },
        variable: format_ident!("field_{number}"),
        visibility: &declared.vis,
        family: field::family(&declared.ty, lifetime),
        is_reference: matches!(declared.ty, syn::Type::Reference(_)),
    })
}
