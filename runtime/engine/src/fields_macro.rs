//! Structs that say what each of their fields begins with: settings first of all, whose values can be chosen,
//! and what is kept of something from when it comes.
//!
//! Owns the way from such a struct to its `Default`, or to a function in its place. Does not own what the
//! values mean, nor how they are read.

/// Makes a struct and its `Default`: each field has the value that stands behind it, and one without
/// such a value has the default of its type. This is the syntax of Rust's RFC 3681, which the
/// compiler does not know yet.
///
/// ```
/// napreduce_engine::fields! {
///     /// How often a door is tried.
///     #[derive(Debug, PartialEq)]
///     struct Knocks {
///         /// How often at most.
///         times_max: u32 = 3,
///         /// What is called out, if anything is.
///         call: Option<String>,
///     }
/// }
/// assert_eq!(Knocks::default(), Knocks { times_max: 3, call: None });
/// ```
///
/// A struct that cannot be without some values has a function of them in the place of `Default`:
///
/// ```
/// napreduce_engine::fields! {
///     struct Visit {
///         door: String = door,
///         times_max: u32 = 3,
///     }
///
///     /// A visit as most are.
///     fn to(door: String);
/// }
/// assert_eq!(Visit::to("left".to_owned()).times_max, 3);
/// ```
///
/// What several fields follow from is found out first, within braces behind the function:
///
/// ```
/// napreduce_engine::fields! {
///     struct Wait {
///         from: u64 = begin,
///         until: u64 = begin + 60,
///     }
///
///     /// The wait of a minute.
///     fn of(minute: u64) {
///         let begin = minute * 60;
///     }
/// }
/// assert_eq!((Wait::of(2).from, Wait::of(2).until), (120, 180));
/// ```
#[macro_export]
macro_rules! fields {
    ($(#[$of:meta])* $seen:vis struct $name:ident {
        $($(#[$about:meta])* $field_seen:vis $field:ident: $type:ty $(= $value:expr)?),+ $(,)?
    }) => {
        $(#[$of])*
        $seen struct $name {
            $($(#[$about])* $field_seen $field: $type),+
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $crate::fields!(@default $($value)?)),+ }
            }
        }
    };
    ($(#[$of:meta])* $seen:vis struct $name:ident {
        $($(#[$about:meta])* $field_seen:vis $field:ident: $type:ty $(= $value:expr)?),+ $(,)?
    }
    $(#[$of_new:meta])* $new_seen:vis fn $new:ident($($given:ident: $given_type:ty),+) $({ $($first:tt)* })? $(;)?) => {
        $(#[$of])*
        $seen struct $name {
            $($(#[$about])* $field_seen $field: $type),+
        }

        impl $name {
            $(#[$of_new])*
            $new_seen fn $new($($given: $given_type),+) -> $name {
                $($($first)*)?
                $name { $($field: $crate::fields!(@default $($value)?)),+ }
            }
        }
    };
    (@default) => { Default::default() };
    (@default $value:expr) => { $value };
}
