//! Globs over paths: `logs/*.txt`, `logs/**/[ab]?.csv`. The crate `glob` matches one name. The directory walk
//! is separate, to skip hidden names and stop at link cycles.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use glob::Pattern;

use super::{Entry, Identity, identity, is_absent, is_hidden, unreadable};
use crate::input::error::InputError;

/// Returns whether an argument that does not exist may be a glob.
pub(super) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Expands the first `{a,b}` of an argument; returns `None` without one. Braces in brackets, and braces
/// without a comma, are literal.
pub(super) fn alternatives(text: &str) -> Option<Vec<String>> {
    let (mut depth, mut in_brackets) = (0, false);
    let (mut begin, mut commas) = (0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            _ if in_brackets => in_brackets = letter != ']',
            '[' => in_brackets = text[at..].contains(']'),
            '{' => {
                depth += 1;
                if depth == 1 {
                    (begin, commas) = (at, vec![at]);
                }
            }
            ',' if depth == 1 => commas.push(at),
            '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 && commas.len() > 1 {
                    commas.push(at);
                    let parts = commas.windows(2).map(|pair| &text[pair[0] + 1..pair[1]]);
                    return Some(
                        parts.map(|part| [&text[..begin], part, &text[at + 1..]].concat()).collect(),
                    );
                }
            }
            _ => {}
        }
    }
    None
}

/// A glob, split by name.
pub(super) struct PathPattern {
    parts: Vec<Part>,
    /// The glob ends with a slash.
    directories_only: bool,
}

enum Part {
    /// A literal name.
    Name(OsString),
    /// A pattern of names.
    Like { pattern: Pattern, spells_hidden: bool },
    /// Any number of directories: `**`.
    Deep,
}

impl PathPattern {
    pub(super) fn parse(text: &str) -> Result<PathPattern, InputError> {
        let bad = |error: glob::PatternError| InputError::BadPattern {
            pattern: text.to_owned(),
            reason: error.to_string(),
        };
        // Parsed as a whole first, for the position in an error.
        Pattern::new(text).map_err(bad)?;
        let part = |component: Component<'_>| {
            let name = component.as_os_str();
            let text = name.to_str().filter(|text| is_glob(text));
            Ok(match text {
                None => Part::Name(name.to_owned()),
                Some("**") => Part::Deep,
                Some(text) => {
                    Part::Like { pattern: Pattern::new(text).map_err(bad)?, spells_hidden: is_hidden(name) }
                }
            })
        };
        let parts = Path::new(text).components().map(part).collect::<Result<_, _>>()?;
        Ok(PathPattern { parts, directories_only: text.ends_with('/') })
    }

    /// Returns the existing matches in the order of names.
    pub(super) fn matches(&self) -> Result<Vec<Entry>, InputError> {
        let mut walk = Walk { matches: Vec::new(), searched: HashSet::new() };
        walk.follow(PathBuf::new(), &self.parts)?;
        walk.matches.retain(|(_, metadata)| metadata.is_dir() || !self.directories_only);
        Ok(walk.matches)
    }
}

#[cfg(feature = "storage")]
impl PathPattern {
    /// Returns the literal names at the start: all matches begin with them.
    pub(super) fn spelled(&self) -> Vec<&str> {
        let spelled = self.parts.iter().map_while(|part| match part {
            Part::Name(name) => name.to_str(),
            _ => None,
        });
        spelled.collect()
    }

    /// Returns how many names are left at least below the part of `names` that matches, or `None` if neither
    /// they nor a directory on the way match.
    pub(super) fn left_below(&self, names: &[&str]) -> Option<usize> {
        let left = left_below(&self.parts, names)?;
        (left > 0 || !self.directories_only).then_some(left)
    }
}

#[cfg(feature = "storage")]
fn left_below(parts: &[Part], names: &[&str]) -> Option<usize> {
    let Some((part, rest)) = parts.split_first() else { return Some(names.len()) };
    let first = names.split_first();
    match part {
        Part::Name(name) => {
            first.filter(|(first, _)| name == *first).and_then(|(_, below)| left_below(rest, below))
        }
        Part::Like { pattern, spells_hidden } => {
            let (name, below) = first?;
            let may_match = *spells_hidden || !is_hidden(name.as_ref());
            if may_match && pattern.matches(name) { left_below(rest, below) } else { None }
        }
        Part::Deep => {
            let here = left_below(rest, names);
            // The last name is not a directory.
            let deeper = first
                .filter(|(name, below)| !below.is_empty() && !is_hidden((**name).as_ref()))
                .and_then(|(_, below)| left_below(parts, below));
            [here, deeper].into_iter().flatten().min()
        }
    }
}

struct Walk {
    matches: Vec<Entry>,
    /// Directories searched at any depth, each with the number of remaining parts.
    searched: HashSet<(usize, Identity)>,
}

impl Walk {
    fn follow(&mut self, path: PathBuf, parts: &[Part]) -> Result<(), InputError> {
        let Some((part, rest)) = parts.split_first() else {
            let path = here_if_empty(path);
            let metadata = fs::metadata(&path).map_err(|error| unreadable(&path, error))?;
            self.matches.push((path, metadata));
            return Ok(());
        };
        match part {
            Part::Name(name) => {
                let path = path.join(name);
                match fs::symlink_metadata(&path) {
                    Ok(_) => self.follow(path, rest),
                    Err(error) if is_absent(&error) => Ok(()),
                    Err(error) => Err(unreadable(&path, error)),
                }
            }
            Part::Like { pattern, spells_hidden } => {
                for name in names(&path)? {
                    let may_match = *spells_hidden || !is_hidden(&name);
                    if may_match && pattern.matches(&name.to_string_lossy()) {
                        self.follow(path.join(name), rest)?;
                    }
                }
                Ok(())
            }
            Part::Deep => self.search(path, rest),
        }
    }

    /// Matches `rest` in this directory and in all below it.
    fn search(&mut self, path: PathBuf, rest: &[Part]) -> Result<(), InputError> {
        let here = here_if_empty(path.clone());
        match fs::metadata(&here) {
            Ok(metadata) if metadata.is_dir() => {
                if !self.searched.insert((rest.len(), identity(&metadata))) {
                    return Ok(());
                }
            }
            Err(error) if !is_absent(&error) => return Err(unreadable(&here, error)),
            _ => return Ok(()),
        }
        self.follow(path.clone(), rest)?;
        let below = names(&path)?.into_iter().filter(|name| !is_hidden(name));
        below.map(|name| path.join(name)).try_for_each(|below| self.search(below, rest))
    }
}

/// Returns `.` for an empty path: the current directory, whose entries have no prefix.
fn here_if_empty(path: PathBuf) -> PathBuf {
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
}

/// Returns the sorted names in a directory; empty if it is not a directory.
fn names(path: &Path) -> Result<Vec<OsString>, InputError> {
    let path = here_if_empty(path.to_owned());
    let listed = fs::read_dir(&path).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<Vec<_>, _>>()
    });
    match listed {
        Ok(mut names) => {
            names.sort();
            Ok(names)
        }
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(error) => Err(unreadable(&path, error)),
    }
}

#[cfg(all(test, feature = "storage"))]
mod tests {
    use super::*;

    fn left(pattern: &str, key: &str) -> Option<usize> {
        let names: Vec<&str> = key.split('/').collect();
        PathPattern::parse(pattern).expect("a pattern").left_below(&names)
    }

    #[test]
    fn wildcards_do_not_match_slashes() {
        for (pattern, key, expected) in [
            ("logs/*.txt", "logs/a.txt", Some(0)),
            ("logs/*.txt", "logs/a/b.txt", None),
            ("logs/*", "logs/a/b.txt", Some(1)),
            ("logs/*", "logs/_a", None),
            ("logs/_*", "logs/_a", Some(0)),
            ("*/b", "a/b/c/d", Some(2)),
            ("logs/*/", "logs/a", None),
            ("logs/*/", "logs/a/b", Some(1)),
            ("**/*.txt", "a.txt", Some(0)),
            ("**/*.txt", "a/b/c.txt", Some(0)),
            ("**/*.txt", "a/_b/c.txt", None),
            ("a/**", "a/b/c", Some(1)),
            ("[ab]?", "bc", Some(0)),
            ("logs/x", "logs", None),
        ] {
            assert_eq!(left(pattern, key), expected, "{pattern} and {key}");
        }
    }

    #[test]
    fn listing_prefix_is_literal_part_of_pattern() {
        let spelled = |text: &str| PathPattern::parse(text).expect("a pattern").spelled().join("/");
        assert_eq!(spelled("logs/2026/*/a.txt"), "logs/2026");
        assert_eq!(spelled("*.txt"), "");
    }
}
