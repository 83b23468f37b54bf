//! Words that do not belong in any tracked file: paths that exist on one machine only, and work left for
//! later. The words are put together from halves here, so that this file passes its own rules.

use super::files::{SourceFile, Violation};

const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/fa", "rm/"), concat!("/tmp/", "target")];
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

pub fn machine_paths(files: &[SourceFile]) -> Vec<Violation> {
    // A path begins where no other path goes on: `data/work/` is a folder of someone's own.
    let begins = |before: char| !(before.is_alphanumeric() || "/._-~}>)$*".contains(before));
    find(files, &MACHINE_PATHS, |before, _| before.is_none_or(begins))
}

pub fn unfinished(files: &[SourceFile]) -> Vec<Violation> {
    let ends = |neighbour: Option<char>| neighbour.is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
    find(files, &UNFINISHED, |before, after| ends(before) && ends(after))
}

/// Every place of a word whose neighbouring characters satisfy `stands`.
fn find(
    files: &[SourceFile],
    words: &[&str],
    stands: impl Fn(Option<char>, Option<char>) -> bool,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.path != "Cargo.lock") {
        for (index, line) in file.text.lines().enumerate() {
            for word in words {
                let places = line.match_indices(word).filter(|(at, _)| {
                    stands(line[..*at].chars().next_back(), line[at + word.len()..].chars().next())
                });
                violations.extend(places.map(|_| file.at(index + 1, format!("{word} in: {}", line.trim()))));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::files::{check_caught, check_passes};
    use super::*;

    fn page(text: &str) -> SourceFile {
        SourceFile::sample("docs/page.md", text)
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for path in MACHINE_PATHS {
            check_caught(machine_paths, page(&format!("first\nsee `{path}x`")), "docs/page.md:2");
            check_passes(machine_paths, page(&format!("see data{path}x and ${{WORK}}{path}x")));
        }
    }

    #[test]
    fn work_left_for_later_is_found() {
        for word in UNFINISHED {
            check_caught(unfinished, page(&format!("// {word}: later")), word);
            check_passes(unfinished, page(&format!("a{word} {word}S {word}_")));
        }
    }
}
