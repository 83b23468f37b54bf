//! Globs over paths: `logs/*.txt`, `logs/**/[ab]?.csv`. The walk skips hidden names and stops at link cycles.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::name_pattern::{NamePattern, set_end};
use super::{Entry, Identity, identity, is_absent, is_hidden, unreadable};
use crate::input::error::InputError;

/// Returns whether an argument that does not exist may be a glob.
pub(super) fn is_glob(argument: &[u8]) -> bool {
    argument
        .iter()
        .any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'))
}

/// Expands the first `{a,b}` of an argument; returns `None` without one. Braces in brackets, after a backslash
/// or without a comma are literal.
pub(super) fn alternatives(argument: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut depth = 0;
    let mut begin = 0;
    let mut commas = Vec::new();
    let mut at = 0;
    while at < argument.len() {
        match argument[at] {
            b'\\' => at += 1,
            b'[' => {
                if let Some(end) = set_end(argument, at) {
                    at = end;
                    continue;
                }
            }
            b'{' => {
                depth += 1;
                if depth == 1 {
                    begin = at;
                    commas = vec![at];
                }
            }
            b',' if depth == 1 => commas.push(at),
            b'}' if depth > 0 => {
                depth -= 1;
                if depth == 0 && commas.len() > 1 {
                    commas.push(at);
                    let mut expanded = Vec::new();
                    for pair in commas.windows(2) {
                        let part = &argument[pair[0] + 1..pair[1]];
                        expanded.push([&argument[..begin], part, &argument[at + 1..]].concat());
                    }
                    return Some(expanded);
                }
            }
            _ => {}
        }
        at += 1;
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
    Like(NamePattern),
    /// Any number of directories: `**`.
    Deep,
}

impl PathPattern {
    pub(super) fn parse(glob: &[u8]) -> Result<PathPattern, InputError> {
        let mut parts = Vec::new();
        for component in Path::new(OsStr::from_bytes(glob)).components() {
            let name = component.as_os_str();
            let part = parse_name(name).map_err(|reason| {
                let pattern = String::from_utf8_lossy(glob).into_owned();
                InputError::BadPattern { pattern, reason }
            })?;
            parts.push(part);
        }
        Ok(PathPattern {
            parts,
            directories_only: glob.ends_with(b"/"),
        })
    }

    /// Returns the existing matches in the order of names.
    pub(super) fn matches(&self) -> Result<Vec<Entry>, InputError> {
        let mut walk = Walk {
            matches: Vec::new(),
            searched: HashSet::new(),
        };
        walk.follow(PathBuf::new(), &self.parts)?;
        walk.matches
            .retain(|(_, metadata)| metadata.is_dir() || !self.directories_only);
        Ok(walk.matches)
    }
}

fn parse_name(name: &OsStr) -> Result<Part, String> {
    if !is_glob(name.as_bytes()) {
        return Ok(Part::Name(name.to_owned()));
    }
    if name == "**" {
        return Ok(Part::Deep);
    }
    let pattern = NamePattern::parse(name.as_bytes())?;
    Ok(match pattern.literal() {
        Some(name) => Part::Name(OsString::from_vec(name)),
        None => Part::Like(pattern),
    })
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
    let Some((part, rest)) = parts.split_first() else {
        return Some(names.len());
    };
    let first = names.split_first();
    match part {
        Part::Name(name) => first
            .filter(|(first, _)| name == *first)
            .and_then(|(_, below)| left_below(rest, below)),
        Part::Like(pattern) => {
            let (name, below) = first?;
            let may_match = pattern.spells_hidden() || !is_hidden(name.as_ref());
            if may_match && pattern.matches(name.as_bytes()) {
                left_below(rest, below)
            } else {
                None
            }
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
            Part::Like(pattern) => {
                for name in names(&path)? {
                    let may_match = pattern.spells_hidden() || !is_hidden(&name);
                    if may_match && pattern.matches(name.as_bytes()) {
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
        below
            .map(|name| path.join(name))
            .try_for_each(|below| self.search(below, rest))
    }
}

/// Returns `.` for an empty path: the current directory, whose entries have no prefix.
fn here_if_empty(path: PathBuf) -> PathBuf {
    if path.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        path
    }
}

/// Returns the sorted names in a directory; empty if it is not a directory.
fn names(path: &Path) -> Result<Vec<OsString>, InputError> {
    let path = here_if_empty(path.to_owned());
    let listed = fs::read_dir(&path).and_then(|entries| {
        entries
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<Result<Vec<_>, _>>()
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
        PathPattern::parse(pattern.as_bytes())
            .expect("a pattern")
            .left_below(&names)
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
        let spelled = |text: &str| {
            PathPattern::parse(text.as_bytes())
                .expect("a pattern")
                .spelled()
                .join("/")
        };
        assert_eq!(spelled("logs/2026/*/a.txt"), "logs/2026");
        assert_eq!(spelled("*.txt"), "");
    }
}
