//! Objects of which each field says what it is made from.
//!
//! Owns how such a table becomes a type and its conversion. Does not own the objects (`answers`, `hadoop`).

/// Makes a struct, and how it is made of what is known: a line for each field.
macro_rules! answer {
    ($(#[$of:meta])* $seen:vis struct $name:ident from |$known:ident: $source:ty| {
        $($(#[$about:meta])* $field_seen:vis $field:ident: $type:ty = $made:expr,)+
    }) => {
        $(#[$of])*
        $seen struct $name {
            $($(#[$about])* $field_seen $field: $type,)+
        }

        impl From<$source> for $name {
            fn from($known: $source) -> $name {
                $name { $($field: $made),+ }
            }
        }
    };
}
