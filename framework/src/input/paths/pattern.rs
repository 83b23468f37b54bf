//! Globs over paths: `logs/*.txt`, `logs/**/[ab]?.csv`.
//!
//! The crate `glob` matches one name; the walk from directory to directory treats hidden names and links that lead back as
//! people expect.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use glob::Pattern;

use super::{Entry, Identity, identity, is_absent, is_hidden, unreadable};
use crate::input::error::InputError;

/// Whether an argument that names nothing may be a glob.
pub(super) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// What the first `{a,b}` of an argument stands for: the argument with each in its place. `None` without one;
/// braces in brackets, and those without a comma, are letters of names.
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

/// A glob, name by name.
pub(super) struct PathPattern {
    parts: Vec<Part>,
    /// It ends with a slash.
    directories_only: bool,
}

enum Part {
    /// This name.
    Name(OsString),
    /// Names like this.
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
        // As a whole, for the place of an error.
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

    /// What is there and matches, in the order of names.
    pub(super) fn matches(&self) -> Result<Vec<Entry>, InputError> {
        let mut walk = Walk { matches: Vec::new(), searched: HashSet::new() };
        walk.follow(PathBuf::new(), &self.parts)?;
        walk.matches.retain(|(_, metadata)| metadata.is_dir() || !self.directories_only);
        Ok(walk.matches)
    }
}

#[cfg(feature = "storage")]
impl PathPattern {
    /// The names before the first that is not spelled out: everything that matches begins with them.
    pub(super) fn spelled(&self) -> Vec<&str> {
        let spelled = self.parts.iter().map_while(|part| match part {
            Part::Name(name) => name.to_str(),
            _ => None,
        });
        spelled.collect()
    }

    /// Whether something of these names matches, or a directory that it is in: how many names are left below
    /// that, at least.
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
            let is_meant = *spells_hidden || !is_hidden(name.as_ref());
            if is_meant && pattern.matches(name) { left_below(rest, below) } else { None }
        }
        Part::Deep => {
            let here = left_below(rest, names);
            // The last name is no directory.
            let deeper = first
                .filter(|(name, below)| !below.is_empty() && !is_hidden((**name).as_ref()))
                .and_then(|(_, below)| left_below(parts, below));
            [here, deeper].into_iter().flatten().min()
        }
    }
}

struct Walk {
    matches: Vec<Entry>,
    /// Directories that were searched at any depth, each with the number of parts that were left.
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
                    let is_meant = *spells_hidden || !is_hidden(&name);
                    if is_meant && pattern.matches(&name.to_string_lossy()) {
                        self.follow(path.join(name), rest)?;
                    }
                }
                Ok(())
            }
            Part::Deep => self.search(path, rest),
        }
    }

    /// Follows `rest` from this directory on, and from each one below it.
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

/// An empty path is the current directory, and what is in it has paths without it.
fn here_if_empty(path: PathBuf) -> PathBuf {
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
}

/// The names in a directory, in order; none where there is no directory.
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
    fn keys_match_from_slash_to_slash() {
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
    fn what_is_listed_is_what_is_spelled_out() {
        let spelled = |text: &str| PathPattern::parse(text).expect("a pattern").spelled().join("/");
        assert_eq!(spelled("logs/2026/*/a.txt"), "logs/2026");
        assert_eq!(spelled("*.txt"), "");
    }
}
