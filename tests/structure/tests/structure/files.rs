//! The files that the rules check: everything tracked by git, read once.

use std::cell::OnceCell;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tracked file.
pub struct SourceFile {
    /// From the root of the repository, with `/`.
    pub path: String,
    pub text: String,
    /// The syntax tree, or the line and reason why the file is not valid Rust.
    syntax: OnceCell<Result<syn::File, (usize, String)>>,
}

impl SourceFile {
    fn new(path: String, text: String) -> SourceFile {
        SourceFile {
            path,
            text,
            syntax: OnceCell::new(),
        }
    }

    /// Creates a sample file for the test of a rule.
    pub fn sample(path: &str, text: &str) -> SourceFile {
        SourceFile::new(path.to_owned(), text.to_owned())
    }

    /// Returns whether this is Rust. The templates of `nap new` become Rust when their placeholders are filled.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs") && !self.path.starts_with("runtime/cli/templates/")
    }

    /// Returns whether the file belongs to integration tests and their support code.
    pub fn is_test(&self) -> bool {
        self.path
            .split('/')
            .any(|part| part == "tests" || part == "benches")
    }

    /// Returns the syntax tree, parsed once for all rules, or the reason why the file is not valid Rust.
    pub fn syntax(&self) -> Result<&syn::File, Violation> {
        let parse = || {
            syn::parse_file(&self.text)
                .map_err(|error| (error.span().start().line, error.to_string()))
        };
        let parsed = self.syntax.get_or_init(parse).as_ref();
        parsed.map_err(|(line, error)| self.at(*line, format!("cannot be parsed: {error}")))
    }

    /// Returns a violation in a line of this file, counted from 1.
    pub fn at(&self, line: usize, what: impl Into<String>) -> Violation {
        Violation {
            path: self.path.clone(),
            line,
            what: what.into(),
        }
    }
}

/// One place that breaks a rule.
#[derive(Debug)]
pub struct Violation {
    pub path: String,
    /// Counted from 1; 0 for the file as a whole.
    pub line: usize,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// Returns the root folder of the repository.
pub fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
}

/// Returns all tracked files; in a source archive without git, all files except build output.
pub fn tracked() -> Vec<SourceFile> {
    let top = top();
    let mut paths = if top.join(".git").exists() {
        from_git(top)
    } else {
        from_archive(top, Path::new(""))
    };
    paths.sort();
    let read = |path: PathBuf| {
        // A file deleted in the working tree is still listed by git until the deletion is staged.
        let bytes = fs::read(top.join(&path)).ok()?;
        // Binary files such as pictures count as empty text.
        let text = String::from_utf8(bytes).unwrap_or_default();
        Some(SourceFile::new(path.to_str().unwrap().to_owned(), text))
    };
    paths.into_iter().filter_map(read).collect()
}

fn from_git(top: &Path) -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(top)
        .output();
    let output = output.expect("git runs where there is a git repository");
    assert!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = String::from_utf8(output.stdout).unwrap();
    names.split_terminator('\0').map(PathBuf::from).collect()
}

fn from_archive(top: &Path, below: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(top.join(below)).unwrap() {
        let entry = entry.unwrap();
        let path = below.join(entry.file_name());
        let built = ["target", "out"].iter().any(|name| path == Path::new(name));
        match entry.file_type().unwrap() {
            kind if kind.is_dir() && !built => paths.extend(from_archive(top, &path)),
            kind if kind.is_file() => paths.push(path),
            _ => {}
        }
    }
    paths
}

/// Asserts that a rule finds exactly one violation in a bad sample, and that its text contains `part`.
#[track_caller]
pub fn check_caught(rule: fn(&[SourceFile]) -> Vec<Violation>, file: SourceFile, part: &str) {
    let violations = rule(&[file]);
    let [violation] = violations.as_slice() else {
        panic!("expected one violation: {violations:?}")
    };
    assert!(violation.to_string().contains(part), "{violation}");
}

/// Asserts that a rule finds nothing wrong with a good sample.
#[track_caller]
pub fn check_passes(rule: fn(&[SourceFile]) -> Vec<Violation>, file: SourceFile) {
    let violations = rule(&[file]);
    assert!(violations.is_empty(), "{violations:?}");
}
