//! Objects of which each field says what it is made from.
//!
//! Owns how such a table becomes a type and its conversion. Does not own the objects (`answers`).

/// Makes structs that are answered as JSON, and how each is made of what is known: a line for each field. One
/// is made `from` a single thing; or else a function behind it says of what, as in `fields!`.
macro_rules! answer {
    ($($(#[$of:meta])* $seen:vis struct $name:ident from |$known:ident: $source:ty| {
        $($(#[$about:meta])* $field_seen:vis $field:ident: $type:ty = $made:expr,)+
    })+) => {$(
        #[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
        $(#[$of])*
        $seen struct $name {
            $($(#[$about])* $field_seen $field: $type,)+
        }

        impl From<$source> for $name {
            fn from($known: $source) -> $name {
                $name { $($field: $made),+ }
            }
        }
    )+};
    ($(#[$of:meta])* $seen:vis struct $($rest:tt)+) => {
        napreduce_engine::fields! {
            #[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
            $(#[$of])*
            $seen struct $($rest)+
        }
    };
}
