//! Checks that Markdown pages refer only to existing things: link targets, files and folders of the
//! repository, and the context lines of patches.

use super::files::{SourceFile, Violation};
use std::collections::BTreeSet;

/// Top-level folders: a name in backticks that begins with one of them is a path in the repository.
const FOLDERS: [&str; 8] = [
    ".ci/",
    "datagen/",
    "docs/",
    "examples/",
    "framework/",
    "python/",
    "runtime/",
    "tests/",
];

/// Parts of a name that mark a placeholder.
const PLACEHOLDERS: [&str; 5] = ["*", "{", "<", "NAME", "mine"];

pub fn names_are_there(files: &[SourceFile]) -> Vec<Violation> {
    let known = files
        .iter()
        .flat_map(|file| with_folders(&file.path))
        .collect::<BTreeSet<&str>>();
    // A changelog names removed files.
    let pages = files
        .iter()
        .filter(|file| file.path.ends_with(".md") && file.path != "CHANGELOG.md");
    pages
        .flat_map(|page| {
            missing(page, &known)
                .into_iter()
                .chain(missing_anchors(page, files))
        })
        .collect()
}

/// Reports links to headings that do not exist.
fn missing_anchors(page: &SourceFile, files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        for target in between(line, "](", ')').filter(|target| !target.contains("://")) {
            let Some((path, anchor)) = target.split_once('#') else {
                continue;
            };
            let path = if path.is_empty() {
                page.path.clone()
            } else {
                joined(folder(page), path)
            };
            let linked = files
                .iter()
                .find(|file| file.path == path && path.ends_with(".md"));
            if linked.is_some_and(|linked| !anchors(&linked.text).contains(anchor)) {
                violations.push(page.at(index + 1, format!("{path} has no heading #{anchor}")));
            }
        }
    }
    violations
}

/// Returns the anchors of a page's headings: lower case, hyphens for spaces, no punctuation.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut in_block = false;
    let mut anchors = BTreeSet::new();
    for line in page.lines() {
        in_block ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if !in_block && heading.len() < line.len() {
            let named = heading.trim().to_lowercase().replace(' ', "-");
            anchors.insert(named.replace(|c: char| !c.is_alphanumeric() && !"-_".contains(c), ""));
        }
    }
    anchors
}

/// Returns the folder of a page.
fn folder(page: &SourceFile) -> &str {
    page.path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

const SUMMARY: &str = "docs/SUMMARY.md";

/// Other files of the book (`docs/book.sh`).
const BOOK_FILES: [&str; 2] = ["docs/pictures/", "examples/"];

/// Every page of `docs/` is in the book once, and pages of the book link only to pages of the book.
pub fn book_is_complete(files: &[SourceFile]) -> Vec<Violation> {
    let Some(summary) = files.iter().find(|file| file.path == SUMMARY) else {
        return vec![Violation {
            path: SUMMARY.to_owned(),
            line: 0,
            what: "is not there".to_owned(),
        }];
    };
    let mut violations = Vec::new();
    let mut chapters = BTreeSet::new();
    for (index, line) in summary.text.lines().enumerate() {
        for target in between(line, "](", ')') {
            if !chapters.insert(joined("docs", target)) {
                violations
                    .push(summary.at(index + 1, format!("{target} is a second time in the book")));
            }
        }
    }
    for page in files
        .iter()
        .filter(|file| file.path.starts_with("docs/") && file.path.ends_with(".md"))
    {
        if !chapters.contains(&page.path) && page.path != SUMMARY {
            violations.push(page.at(0, format!("is not in {SUMMARY}")));
        }
    }
    for page in files.iter().filter(|file| chapters.contains(&file.path)) {
        for (index, line) in page.text.lines().enumerate() {
            for target in between(line, "](", ')').filter(|target| !target.contains("://")) {
                let path = joined(folder(page), target.split('#').next().unwrap_or_default());
                let is_file =
                    !path.ends_with(".md") && BOOK_FILES.iter().any(|top| path.starts_with(top));
                if !target.starts_with('#') && !is_file && !chapters.contains(&path) {
                    violations.push(page.at(
                        index + 1,
                        format!("a link to {path}, which is not in the book"),
                    ));
                }
            }
        }
    }
    violations
}

/// Returns a path and all its parent folders.
fn with_folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/')
        .map(|(at, _)| &path[..at])
        .chain([path])
}

fn missing(page: &SourceFile, known: &BTreeSet<&str>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        for target in between(line, "](", ')').filter(|target| !target.contains("://")) {
            let target = target.split('#').next().unwrap_or_default();
            if !target.is_empty() && !known.contains(joined(folder(page), target).as_str()) {
                violations
                    .push(page.at(index + 1, format!("a link to {target}, which is not there")));
            }
        }
        for name in
            between(line, "`", '`').filter(|name| FOLDERS.iter().any(|top| name.starts_with(top)))
        {
            let stands_for_more =
                PLACEHOLDERS.iter().any(|part| name.contains(part)) || name.contains(' ');
            if !stands_for_more && !known.contains(name.trim_end_matches('/')) {
                violations.push(page.at(index + 1, format!("{name} is named, and is not there")));
            }
        }
    }
    violations
}

/// The README of a package is also shown outside the repository, so its links must be absolute.
pub fn published_pages_stand_alone(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for manifest in files.iter().filter(|file| file.path.ends_with(".toml")) {
        let folder = manifest
            .path
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        for name in manifest
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("readme = \""))
        {
            let path = joined(folder, name.trim_end_matches('"'));
            let Some(page) = files.iter().find(|file| file.path == path) else {
                violations.push(manifest.at(0, format!("its readme {path} is not there")));
                continue;
            };
            for (index, line) in page.text.lines().enumerate() {
                for target in between(line, "](", ')').filter(|target| !target.contains("://")) {
                    violations.push(page.at(
                        index + 1,
                        format!("a link to {target}, on a page of a package"),
                    ));
                }
            }
        }
    }
    violations
}

/// The context and removed lines of a patch in a page must occur in the named file, so that readers can apply
/// it. The file name may be followed by words in parentheses.
pub fn patches_fit(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for page in files.iter().filter(|file| file.path.ends_with(".md")) {
        let mut patched: Option<&SourceFile> = None;
        let mut in_patch = false;
        for (index, line) in page.text.lines().enumerate() {
            if line.starts_with("```") {
                in_patch = line == "```diff";
                patched = None;
            } else if let (true, Some(name)) = (in_patch, line.strip_prefix("--- a/")) {
                let path = name.split(" (").next().unwrap_or_default();
                patched = files.iter().find(|file| file.path == path);
                if patched.is_none() {
                    violations
                        .push(page.at(index + 1, format!("{path} is patched, and is not there")));
                }
            } else if let (Some(file), Some(kept)) = (patched, line.strip_prefix([' ', '-']))
                && !file.text.lines().any(|own| own == kept)
            {
                violations
                    .push(page.at(index + 1, format!("not in {}: {}", file.path, kept.trim())));
            }
        }
    }
    violations
}

/// A row `| 1 | `Type::Variant` | `file` |` of a page names a type and a variant that the file contains.
pub fn steps_are_there(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for page in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (index, line) in page.text.lines().enumerate() {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let ["", number, name, place, ..] = cells[..] else {
                continue;
            };
            let is_step = number.parse::<u32>().is_ok() && place.ends_with(".rs`");
            if !is_step {
                continue;
            }
            let place = place.trim_matches('`');
            let Some(file) = files.iter().find(|file| file.path == place) else {
                violations.push(page.at(index + 1, format!("{place} is not there")));
                continue;
            };
            for part in name.trim_matches('`').split("::") {
                let is_other = |c: char| !c.is_alphanumeric() && c != '_';
                if !file.text.split(is_other).any(|word| word == part) {
                    violations.push(page.at(index + 1, format!("{part} is not in {place}")));
                }
            }
        }
    }
    violations
}

/// Returns the texts between each opening and the next closing.
fn between<'a>(line: &'a str, open: &'a str, close: char) -> impl Iterator<Item = &'a str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (_, behind) = rest.split_once(open)?;
        let (inside, after) = behind.split_once(close)?;
        rest = after;
        Some(inside)
    })
}

/// Resolves a relative path from a folder of the repository, without `.` and `..`.
fn joined(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let files = [
            SourceFile::sample("docs/page.md", text),
            SourceFile::sample(
                "docs/more/other.md",
                "```\n# no heading\n```\n## The `first` part\n",
            ),
            SourceFile::sample("runtime/engine/src/lib.rs", ""),
            SourceFile::sample("README.md", ""),
        ];
        names_are_there(&files)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn existing_names_in_docs_are_accepted() {
        let text = "# Here\n[a](more/other.md#the-first-part) [b](../README.md) [c](https://example.org/x) [d](#here)\n\
                    `runtime/engine/src/`, `runtime/engine/src/lib.rs`, `runtime/NAME/src`, `examples/src/bin/mine.rs`";
        assert_eq!(found(text), [""; 0]);
    }

    #[test]
    fn missing_names_in_docs_are_reported_with_line() {
        assert_eq!(
            found("\n[a](gone.md)"),
            ["docs/page.md:2: a link to gone.md, which is not there"]
        );
        assert_eq!(
            found("[a](more/other.md#no-heading)"),
            ["docs/page.md:1: docs/more/other.md has no heading #no-heading"]
        );
        assert_eq!(
            found("[a](#gone)"),
            ["docs/page.md:1: docs/page.md has no heading #gone"]
        );
        assert_eq!(
            found("see `runtime/dreams/` and `docs/page.md`"),
            ["docs/page.md:1: runtime/dreams/ is named, and is not there"]
        );
    }

    #[test]
    fn page_outside_of_the_book_is_reported() {
        let book = |summary: &str, page: &str| {
            let files = [
                SourceFile::sample("docs/SUMMARY.md", summary),
                SourceFile::sample("docs/page.md", page),
                SourceFile::sample("README.md", ""),
            ];
            book_is_complete(&files)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<String>>()
        };
        let both = "[a](../README.md)\n[b](page.md)\n";
        assert_eq!(
            book(both, "[a](../README.md) [b](pictures/a.png) [c](#c)"),
            [""; 0]
        );
        assert_eq!(
            book(&format!("{both}[b](page.md)"), ""),
            ["docs/SUMMARY.md:3: page.md is a second time in the book"]
        );
        assert_eq!(
            book("[a](../README.md)", ""),
            ["docs/page.md: is not in docs/SUMMARY.md"]
        );
        assert_eq!(
            book(both, "\n[a](../a.rs)"),
            ["docs/page.md:2: a link to a.rs, which is not in the book"]
        );
    }

    #[test]
    fn repository_link_on_package_page_is_reported() {
        let page = |text: &str| {
            let manifest =
                SourceFile::sample("a/Cargo.toml", "[package]\nreadme = \"../README.md\"\n");
            let files = [manifest, SourceFile::sample("README.md", text)];
            let violations = published_pages_stand_alone(&files);
            violations
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<String>>()
        };
        assert_eq!(page("[a](https://example.org/a)"), [""; 0]);
        assert_eq!(
            page("\n[a](docs/a.md)"),
            ["README.md:2: a link to docs/a.md, on a page of a package"]
        );
    }

    #[test]
    fn step_that_is_not_in_its_file_is_reported() {
        let found = |name: &str| -> Vec<String> {
            let row = format!("| 1 | `{name}` | `runtime/engine/src/sample.rs` | sent |");
            let files = [
                SourceFile::sample("docs/page.md", &row),
                SourceFile::sample("runtime/engine/src/sample.rs", "enum Order { Suspend }"),
            ];
            let violations = steps_are_there(&files);
            violations.iter().map(ToString::to_string).collect()
        };
        assert_eq!(found("Order::Suspend"), Vec::<String>::new());
        assert_eq!(
            found("Order::Resume"),
            ["docs/page.md:1: Resume is not in runtime/engine/src/sample.rs"]
        );
    }

    #[test]
    fn patch_with_unchanged_context_fits() {
        let patched = |patch: &str| {
            let page = format!("```rust\n--- a/gone.rs\n no\n```\n```diff\n{patch}\n```\n");
            let code = SourceFile::sample("runtime/engine/src/lib.rs", "mod a;\n    mod c;\n");
            let violations = patches_fit(&[SourceFile::sample("docs/page.md", &page), code]);
            violations
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<String>>()
        };
        assert_eq!(
            patched("--- a/runtime/engine/src/lib.rs (two places)\n mod a;\n+mod b;\n-    mod c;"),
            [""; 0]
        );
        assert_eq!(
            patched("--- a/runtime/engine/src/lib.rs\n+mod b;\n mod c;"),
            ["docs/page.md:8: not in runtime/engine/src/lib.rs: mod c;"]
        );
        assert_eq!(
            patched("--- a/gone.rs\n mod c;"),
            ["docs/page.md:6: gone.rs is patched, and is not there"]
        );
    }
}
