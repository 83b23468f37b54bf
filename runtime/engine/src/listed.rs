//! A macro for enums that list their variants, with the word that each one is printed as.

/// Defines an enum that lists its variants. If each variant has a word, the enum is also printed and parsed
/// by these words.
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
            /// All variants, in the order of their definition.
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
            /// The words of all variants.
            pub const WORDS: [&str; $name::ALL.len()] = [$($word),+];

            /// Returns the printed word.
            pub const fn in_words(self) -> &'static str {
                match self {
                    $($name::$variant => $word),+
                }
            }

            /// Parses the word that `Display` prints.
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
