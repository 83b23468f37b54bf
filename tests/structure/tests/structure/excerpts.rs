//! Checks that code excerpts in pages equal the source. The line above a code block names the file and the
//! first line of the item; the excerpt ends at the line that closes the item:
//!
//! ```text
//! `runtime/data/src/key.rs`, `pub fn pack`:
//! ```
//!
//! For a part of an item, the line names the first and the last line: ``, `let first` to `let last`:``.

use super::files::{SourceFile, Violation};
use std::ops::Range;
use std::path::Path;

/// A code block with a caption that names its source.
struct Excerpt<'a> {
    path: &'a str,
    first: &'a str,
    last: Option<&'a str>,
    /// The lines of the block, counted from 0.
    block: Range<usize>,
}

pub fn excerpts_are_source(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for page in files.iter().filter(|file| file.path.ends_with(".md")) {
        let lines: Vec<&str> = page.text.lines().collect();
        for excerpt in excerpts(&lines) {
            match file_of(&excerpt, files).and_then(|file| source_in(file, &excerpt)) {
                Ok(source) if source == lines[excerpt.block.clone()] => {}
                Ok(_) => {
                    let what = format!(
                        "{}, {} differs from the source",
                        excerpt.path, excerpt.first
                    );
                    violations.push(page.at(excerpt.block.start, what));
                }
                Err(why) => violations.push(page.at(excerpt.block.start, why)),
            }
        }
    }
    violations
}

/// Returns the page with all excerpts updated from the source, and with the new paths of moved files.
pub fn refreshed(page: &SourceFile, files: &[SourceFile]) -> String {
    let lines: Vec<&str> = page.text.lines().collect();
    let mut text = String::new();
    let mut next = 0;
    let mut add = |lines: &[&str]| lines.iter().for_each(|line| text.extend([line, "\n"]));
    for excerpt in excerpts(&lines) {
        let file = file_of(&excerpt, files)
            .ok()
            .or_else(|| moved(&excerpt, files));
        if let Some((file, Ok(source))) = file.map(|file| (file, source_in(file, &excerpt))) {
            let caption = excerpt.block.start - CAPTION_LINES;
            add(&lines[next..caption]);
            add(&[&lines[caption].replace(excerpt.path, &file.path)]);
            add(&lines[caption + 1..excerpt.block.start]);
            add(&source);
            next = excerpt.block.end;
        }
    }
    add(&lines[next..]);
    text
}

/// The caption, an empty line, and the line that opens the block.
const CAPTION_LINES: usize = 3;

fn excerpts<'a>(lines: &[&'a str]) -> Vec<Excerpt<'a>> {
    let mut excerpts = Vec::new();
    for (index, window) in lines.windows(CAPTION_LINES).enumerate() {
        let &[caption, "", "```rust"] = window else {
            continue;
        };
        let parts: Vec<&str> = caption.split('`').collect();
        let (path, first, last) = match parts[..] {
            ["", path, ", ", first, ":"] => (path, first, None),
            ["", path, ", ", first, " to ", last, ":"] => (path, first, Some(last)),
            _ => continue,
        };
        let start = index + CAPTION_LINES;
        let length = lines[start..]
            .iter()
            .take_while(|line| **line != "```")
            .count();
        excerpts.push(Excerpt {
            path,
            first,
            last,
            block: start..start + length,
        });
    }
    excerpts
}

fn file_of<'a>(excerpt: &Excerpt<'_>, files: &'a [SourceFile]) -> Result<&'a SourceFile, String> {
    let path = excerpt.path;
    files
        .iter()
        .find(|file| file.path == path)
        .ok_or_else(|| format!("{path} is not there"))
}

/// Returns the only file of that name in another folder that contains the excerpt.
fn moved<'a>(excerpt: &Excerpt<'_>, files: &'a [SourceFile]) -> Option<&'a SourceFile> {
    let name = Path::new(excerpt.path).file_name();
    let named = files
        .iter()
        .filter(|file| Path::new(&file.path).file_name() == name);
    let mut found = named.filter(|file| source_in(file, excerpt).is_ok());
    found.next().filter(|_| found.next().is_none())
}

/// Returns the lines of the source, without the indentation of the first one.
fn source_in<'a>(file: &'a SourceFile, excerpt: &Excerpt<'_>) -> Result<Vec<&'a str>, String> {
    let &Excerpt { first, last, .. } = excerpt;
    let path = &file.path;
    let lines: Vec<&str> = file.text.lines().collect();
    let begins = |line: &str, text: &str| line.trim_start().starts_with(text);
    let found: Vec<usize> = (0..lines.len())
        .filter(|line| begins(lines[*line], first))
        .collect();
    let &[start] = found.as_slice() else {
        return Err(format!(
            "{} lines of {path} begin with {first}, not one",
            found.len()
        ));
    };
    let indentation = lines[start].len() - lines[start].trim_start().len();
    let closes = |line: &str| match last {
        Some(last) => begins(line, last),
        None => {
            let inside = line.get(indentation..).unwrap_or_default();
            ["}", "};", "}),", "});", "];", ");"].contains(&inside)
        }
    };
    let is_one_line = last.is_none() && lines[start].ends_with([';', '}']);
    let length = if is_one_line {
        Some(0)
    } else {
        lines[start..].iter().position(|line| closes(line))
    };
    let end = start + length.ok_or(format!("{path} has no end of {first}"))?;
    Ok(lines[start..=end]
        .iter()
        .map(|line| line.get(indentation..).unwrap_or_default())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "mod a;\nimpl A {\n    fn f(\n        b: B,\n    ) -> C {\n        if b {\n        }\n\n        c\n    }\n}\n";

    fn page(caption: &str, block: &str) -> [SourceFile; 2] {
        let page = format!("# A page\n\n{caption}:\n\n```rust\n{block}```\nThe end.\n");
        [
            SourceFile::sample("docs/page.md", &page),
            SourceFile::sample("a.rs", CODE),
        ]
    }

    fn violations(caption: &str, block: &str) -> Vec<String> {
        excerpts_are_source(&page(caption, block))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn excerpt_is_an_item_or_lines_of_it() {
        let item = "fn f(\n    b: B,\n) -> C {\n    if b {\n    }\n\n    c\n}\n";
        assert_eq!(violations("`a.rs`, `fn f`", item), [""; 0]);
        assert_eq!(
            violations("`a.rs`, `if b` to `c`", "if b {\n}\n\nc\n"),
            [""; 0]
        );
        assert_eq!(violations("`a.rs`, `mod a`", "mod a;\n"), [""; 0]);
        assert_eq!(violations("As in `a.rs`", "anything"), [""; 0]);
    }

    #[test]
    fn excerpt_that_differs_is_reported_and_refreshed() {
        let [page, code] = page("`a.rs`, `if b`", "if not_b {\n}\n");
        let files = [page, code];
        let found: Vec<String> = excerpts_are_source(&files)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            ["docs/page.md:5: a.rs, if b differs from the source"]
        );
        assert_eq!(
            refreshed(&files[0], &files),
            "# A page\n\n`a.rs`, `if b`:\n\n```rust\nif b {\n}\n```\nThe end.\n"
        );
    }

    #[test]
    fn excerpt_of_a_moved_file_is_refreshed_with_its_path() {
        let [page, code] = page("`old/a.rs`, `mod a`", "");
        let files = [page, SourceFile::sample("new/a.rs", &code.text)];
        assert_eq!(
            refreshed(&files[0], &files),
            "# A page\n\n`new/a.rs`, `mod a`:\n\n```rust\nmod a;\n```\nThe end.\n"
        );
    }

    #[test]
    fn excerpt_without_its_source_is_reported() {
        assert_eq!(
            violations("`b.rs`, `fn f`", ""),
            ["docs/page.md:5: b.rs is not there"]
        );
        assert_eq!(
            violations("`a.rs`, `fn g`", ""),
            ["docs/page.md:5: 0 lines of a.rs begin with fn g, not one"]
        );
        assert_eq!(
            violations("`a.rs`, `if b` to `d`", ""),
            ["docs/page.md:5: a.rs has no end of if b"]
        );
    }
}
