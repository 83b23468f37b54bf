//! Words of arguments that are chosen from a list.

pub fn counted(count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {word:?}; choose from {allowed}")]
pub struct UnknownWord {
    what: &'static str,
    word: String,
    allowed: String,
}

impl UnknownWord {
    pub(crate) fn new(what: &'static str, word: &str, allowed: &[&str]) -> UnknownWord {
        UnknownWord { what, word: word.to_owned(), allowed: allowed.join(", ") }
    }
}

/// Reads listed enums by their words; what is said to another word begins so.
macro_rules! read_by_word {
    ($($type:ident: $what:literal),+) => {$(
        impl std::str::FromStr for $type {
            type Err = $crate::words::UnknownWord;

            fn from_str(word: &str) -> Result<$type, $crate::words::UnknownWord> {
                $type::of_word(word).ok_or_else(|| $crate::words::UnknownWord::new($what, word, &$type::WORDS))
            }
        }
    )+};
}
