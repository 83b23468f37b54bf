//! Patterns of one name, as in a shell: `*`, `?`, `[a-z]`, `[!a]` or `[^a]`, and a backslash before a character
//! that is literal. A name is matched by characters. A byte that is not UTF-8 counts as a character.

use std::iter::Peekable;
use std::vec::IntoIter;

/// A character, or a byte that is not part of one.
type Letter = u32;

/// Added to a byte that is not UTF-8; larger than any character.
const NOT_UTF_8: Letter = 0x11_0000;

const BACKSLASH: Letter = '\\' as Letter;
const CLOSING: Letter = ']' as Letter;
const COLON: Letter = ':' as Letter;
const DASH: Letter = '-' as Letter;
const OPENING: Letter = '[' as Letter;
const QUESTION: Letter = '?' as Letter;
const STAR: Letter = '*' as Letter;

/// A pattern of a name.
#[derive(Debug)]
pub(super) struct NamePattern {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    /// Any number of characters: `*`.
    AnyText,
    /// One character: `?`.
    AnyLetter,
    Literal(Letter),
    /// One character of a set, or one that is not in it: `[...]`.
    Set {
        is_negated: bool,
        members: Vec<Member>,
    },
}

#[derive(Debug)]
enum Member {
    /// The characters from the first to the last.
    Range(Letter, Letter),
    /// A class of ASCII characters, as in `[[:digit:]]`.
    Class(fn(&u8) -> bool),
}

/// Returns the index after the bracket that closes the set which begins at `at`; `None` if it is not closed.
pub(super) fn set_end(pattern: &[u8], at: usize) -> Option<usize> {
    let mut end = at + 1;
    if matches!(pattern.get(end), Some(b'!' | b'^')) {
        end += 1;
    }
    // A bracket that comes first is a member.
    if pattern.get(end) == Some(&b']') {
        end += 1;
    }
    loop {
        match pattern.get(end)? {
            b']' => return Some(end + 1),
            b'\\' => end += 2,
            b'[' if pattern.get(end + 1) == Some(&b':') => {
                let name = pattern.get(end + 2..)?;
                let length = name.windows(2).position(|two| two == b":]");
                end += length.map_or(1, |length| length + 4);
            }
            _ => end += 1,
        }
    }
}

impl NamePattern {
    /// Parses a pattern; the error is the reason.
    pub(super) fn parse(pattern: &[u8]) -> Result<NamePattern, String> {
        let mut letters = letters(pattern).into_iter().peekable();
        let mut parts = Vec::new();
        while let Some(letter) = letters.next() {
            let part = match letter {
                STAR => Part::AnyText,
                QUESTION => Part::AnyLetter,
                BACKSLASH => Part::Literal(letters.next().unwrap_or(BACKSLASH)),
                OPENING => parse_set(&mut letters).map_err(|reason| {
                    format!("{reason} in {:?}", String::from_utf8_lossy(pattern))
                })?,
                other => Part::Literal(other),
            };
            parts.push(part);
        }
        Ok(NamePattern { parts })
    }

    /// Returns the name if the pattern matches only this one.
    pub(super) fn literal(&self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        for part in &self.parts {
            let Part::Literal(letter) = part else {
                return None;
            };
            push_letter(*letter, &mut name);
        }
        Some(name)
    }

    /// Returns whether the first character is one of `_` and `.`.
    pub(super) fn spells_hidden(&self) -> bool {
        let first = self.parts.first();
        matches!(first, Some(Part::Literal(letter)) if [Letter::from(b'_'), Letter::from(b'.')].contains(letter))
    }

    /// Returns whether the whole name matches.
    pub(super) fn matches(&self, name: &[u8]) -> bool {
        let name = letters(name);
        let mut part = 0;
        let mut at = 0;
        // The last `*`, and the end of the text that it takes.
        let mut star = None;
        while at < name.len() {
            match self.parts.get(part) {
                Some(Part::AnyText) => {
                    star = Some((part, at));
                    part += 1;
                }
                Some(one) if one.takes(name[at]) => {
                    part += 1;
                    at += 1;
                }
                _ => {
                    let Some((of_star, end)) = star else {
                        return false;
                    };
                    star = Some((of_star, end + 1));
                    part = of_star + 1;
                    at = end + 1;
                }
            }
        }
        self.parts[part..]
            .iter()
            .all(|rest| matches!(rest, Part::AnyText))
    }
}

impl Part {
    /// Returns whether this part, which is not `*`, takes the character.
    fn takes(&self, letter: Letter) -> bool {
        match self {
            Part::AnyText => false,
            Part::AnyLetter => true,
            Part::Literal(literal) => *literal == letter,
            Part::Set {
                is_negated,
                members,
            } => {
                let is_member = members.iter().any(|member| member.contains(letter));
                is_member != *is_negated
            }
        }
    }
}

impl Member {
    fn contains(&self, letter: Letter) -> bool {
        match self {
            Member::Range(first, last) => (*first..=*last).contains(&letter),
            Member::Class(is_in_class) => u8::try_from(letter).is_ok_and(|byte| is_in_class(&byte)),
        }
    }
}

/// Parses a set after its opening bracket.
fn parse_set(letters: &mut Peekable<IntoIter<Letter>>) -> Result<Part, String> {
    let not_closed = || "a bracket is not closed".to_owned();
    let is_negation = |letter: &Letter| [Letter::from(b'!'), Letter::from(b'^')].contains(letter);
    let is_negated = letters.next_if(is_negation).is_some();
    let mut members = Vec::new();
    loop {
        let letter = letters.next().ok_or_else(not_closed)?;
        if letter == CLOSING && !members.is_empty() {
            return Ok(Part::Set {
                is_negated,
                members,
            });
        }
        if letter == OPENING && letters.peek() == Some(&COLON) {
            members.push(parse_class(letters)?);
            continue;
        }
        let first = literal_member(letter, letters)?;
        let mut after = letters.clone();
        let is_range =
            after.next() == Some(DASH) && after.peek().is_some_and(|last| *last != CLOSING);
        if !is_range {
            members.push(Member::Range(first, first));
            continue;
        }
        letters.next();
        let last = letters.next().ok_or_else(not_closed)?;
        let last = literal_member(last, letters)?;
        if last < first {
            return Err("a range in brackets ends before it begins".to_owned());
        }
        members.push(Member::Range(first, last));
    }
}

/// Returns a character of a set, which a backslash may precede.
fn literal_member(
    letter: Letter,
    letters: &mut Peekable<IntoIter<Letter>>,
) -> Result<Letter, String> {
    if letter != BACKSLASH {
        return Ok(letter);
    }
    letters
        .next()
        .ok_or_else(|| "a bracket is not closed".to_owned())
}

/// Parses `:name:]` after its opening bracket.
fn parse_class(letters: &mut Peekable<IntoIter<Letter>>) -> Result<Member, String> {
    letters.next();
    let mut name = Vec::new();
    for letter in letters.by_ref() {
        if letter == COLON {
            break;
        }
        push_letter(letter, &mut name);
    }
    if letters.next() != Some(CLOSING) {
        return Err("a class of characters is not closed".to_owned());
    }
    let class = match &name[..] {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"digit" => u8::is_ascii_digit,
        b"lower" => u8::is_ascii_lowercase,
        b"punct" => u8::is_ascii_punctuation,
        b"space" => u8::is_ascii_whitespace,
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        other => {
            return Err(format!(
                "there is no class of characters {:?}",
                String::from_utf8_lossy(other)
            ));
        }
    };
    Ok(Member::Class(class))
}

fn letters(name: &[u8]) -> Vec<Letter> {
    let mut letters = Vec::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        letters.extend(chunk.valid().chars().map(Letter::from));
        letters.extend(
            chunk
                .invalid()
                .iter()
                .map(|byte| NOT_UTF_8 + Letter::from(*byte)),
        );
    }
    letters
}

fn push_letter(letter: Letter, name: &mut Vec<u8>) {
    match char::from_u32(letter) {
        Some(letter) => name.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        None => name.push((letter - NOT_UTF_8) as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &[u8], name: &[u8]) -> bool {
        NamePattern::parse(pattern)
            .expect("a pattern")
            .matches(name)
    }

    /// The answers are those of bash.
    #[test]
    fn pattern_matches_as_in_a_shell() {
        for (pattern, matching, others) in [
            ("*", &["", "a", "ab"][..], &[][..]),
            ("a*b*c", &["abc", "axbxc", "abcbc"], &["ab", "abcd", "bc"]),
            ("?", &["a", "é", "*"], &["", "ab"]),
            ("[^a]", &["b", "^", "é"], &["a", ""]),
            ("[!a]", &["b", "^", "!"], &["a"]),
            ("[a^]", &["a", "^"], &["b"]),
            ("[a!]", &["a", "!"], &["b"]),
            ("[]a]", &["]", "a"], &["b"]),
            ("[!]a]", &["b"], &["]", "a"]),
            ("[^]a]", &["b"], &["]", "a"]),
            ("[a-c]x", &["ax", "bx", "cx"], &["dx", "-x"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("[-a]", &["a", "-"], &["b"]),
            ("[é-ü]", &["é", "ö"], &["e", "z"]),
            ("[\\]]", &["]"], &["\\", "a"]),
            ("[[:digit:]a]", &["7", "a"], &["b", ":", "d"]),
            ("[![:digit:]]", &["b"], &["7"]),
            ("\\*", &["*"], &["a", "\\*"]),
            ("a\\[b]", &["a[b]"], &["ab"]),
            ("x{1}", &["x{1}"], &["x1"]),
        ] {
            for name in matching {
                assert!(
                    matches(pattern.as_bytes(), name.as_bytes()),
                    "{pattern} and {name}"
                );
            }
            for name in others {
                assert!(
                    !matches(pattern.as_bytes(), name.as_bytes()),
                    "{pattern} and {name}"
                );
            }
        }
    }

    #[test]
    fn byte_that_is_not_utf_8_is_one_character() {
        assert!(matches(b"\xff*", b"\xffa"));
        assert!(!matches(b"\xff*", b"\xfea"));
        assert!(matches(b"a?b", b"a\xffb"));
        assert!(matches(b"[\xfe\xff]", b"\xff"));
        assert!(matches(b"[^\xfe]", b"\xff"));
        assert!(!matches(b"\xff*", "\u{fffd}a".as_bytes()));
        assert_eq!(
            NamePattern::parse(b"a\\*\xff")
                .expect("a pattern")
                .literal()
                .as_deref(),
            Some(&b"a*\xff"[..])
        );
    }

    #[test]
    fn invalid_pattern_is_rejected() {
        for (pattern, reason) in [
            ("[", "a bracket is not closed in \"[\""),
            ("a[]", "a bracket is not closed in \"a[]\""),
            ("[a-", "a bracket is not closed in \"[a-\""),
            (
                "[z-a]",
                "a range in brackets ends before it begins in \"[z-a]\"",
            ),
            (
                "[[:word:]]",
                "there is no class of characters \"word\" in \"[[:word:]]\"",
            ),
        ] {
            assert_eq!(
                NamePattern::parse(pattern.as_bytes()).expect_err("invalid"),
                reason
            );
        }
    }

    #[test]
    fn set_ends_at_its_closing_bracket() {
        for (pattern, end) in [
            ("[a]", Some(3)),
            ("[]a]b", Some(4)),
            ("[!]]", Some(4)),
            ("[[:digit:],]", Some(12)),
            ("[a", None),
        ] {
            assert_eq!(set_end(pattern.as_bytes(), 0), end, "{pattern}");
        }
    }
}
