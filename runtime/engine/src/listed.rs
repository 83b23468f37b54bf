//! Enums that are a table of their variants: a line each, with the word that it is printed as.
//!
//! Owns the list of the variants and the way from a variant to its word and back. Does not own what is said
//! to somebody who writes a word that is none.

/// Makes an enum that lists its variants, and one that is printed and read by its words if each has one.
///
/// ```
/// napreduce_engine::listed! {
///     #[derive(Debug, Clone, Copy, PartialEq)]
///     enum Meal {
///         Lunch = "lunch",
///         LateDinner = "late dinner",
///     }
/// }
/// assert_eq!(Meal::ALL, [Meal::Lunch, Meal::LateDinner]);
/// assert_eq!(Meal::LateDinner.to_string(), "late dinner");
/// assert_eq!(Meal::of_word("lunch"), Some(Meal::Lunch));
/// ```
#[macro_export]
macro_rules! listed {
    ($(#[$of:meta])* $seen:vis enum $name:ident { $($(#[$about:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$of])*
        $seen enum $name {
            $($(#[$about])* $variant),+
        }

        impl $name {
            /// Every one, as they are listed.
            pub const ALL: [$name; [$(stringify!($variant)),+].len()] = [$($name::$variant),+];
        }
    };
    ($(#[$of:meta])* $seen:vis enum $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $crate::listed! {
            $(#[$of])*
            $seen enum $name {
                $($(#[$about])* $variant),+
            }
        }

        impl $name {
            /// The words of all of them.
            pub const WORDS: [&str; $name::ALL.len()] = [$($word),+];

            /// As it is printed.
            pub const fn in_words(self) -> &'static str {
                match self {
                    $($name::$variant => $word),+
                }
            }

            /// The one that is printed so.
            pub fn of_word(word: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|one| one.in_words() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.in_words())
            }
        }
    };
}
