//! The structure rules of the repository, enforced on every tracked file. Each rule is a function from files
//! to violations in its own module, tested there on bad samples. One run lists all violations. `errors` compares the
//! error texts in the sources with snapshots.

#![allow(clippy::unwrap_used)]

mod builds;
mod calls;
mod circles;
mod docs;
mod errors;
mod excerpts;
mod features;
mod files;
mod layers;
mod paths;
mod planted;
mod words;

use files::{SourceFile, Violation};
use std::fmt::Write;

/// A rule: its sentence, and the function that finds what breaks it.
type Rule = (&'static str, fn(&[SourceFile]) -> Vec<Violation>);

const EXCERPTS: &str =
    "an excerpt in a page equals the source (NAPREDUCE_WRITE_EXCERPTS=1 writes it)";

const RULES: &[Rule] = &[
    (
        "the core and the schedulers have no clock, file, thread, runtime, unordered map or unseeded randomness",
        calls::pure_core,
    ),
    (
        "workers reach processes and the clock through one seam",
        calls::workers_use_seams,
    ),
    (
        "daemons take tasks, random numbers and the time from their world",
        calls::daemons_use_world,
    ),
    (
        "a program never panics because it cannot print",
        calls::no_panicking_prints,
    ),
    (
        "unsafe code lives in the listed modules only",
        calls::listed_unsafe,
    ),
    ("a crate names only crates below it", layers::one_direction),
    (
        "modules of one crate do not import each other in a circle",
        circles::no_circles,
    ),
    (
        "dependencies come from the public registry",
        words::public_registry,
    ),
    (
        "a feature that changes what a crate does is on for all members",
        features::for_all_members,
    ),
    (
        "the tables of features for users match Cargo.toml",
        features::tables_match_manifest,
    ),
    (
        "what a page links to or names is there",
        docs::names_are_there,
    ),
    (
        "a page that a package shows links to nothing in the repository",
        docs::published_pages_stand_alone,
    ),
    ("a patch in a page fits what is there", docs::patches_fit),
    (
        "the steps that a page lists are in the code",
        docs::steps_are_there,
    ),
    (EXCERPTS, excerpts::excerpts_are_source),
    (
        "the book has every page once, and links to nothing outside",
        docs::book_is_complete,
    ),
    (
        "no tracked file names a path of one machine",
        words::machine_paths,
    ),
];

/// Updates the excerpts in the pages from the source, if the environment requests it.
fn write_excerpts() {
    let files = files::tracked();
    for page in files.iter().filter(|file| file.path.ends_with(".md")) {
        let refreshed = excerpts::refreshed(page, &files);
        if refreshed.trim_end() != page.text.trim_end() {
            std::fs::write(files::top().join(&page.path), refreshed).unwrap();
        }
    }
}

#[test]
fn repository_follows_structure_rules() {
    if std::env::var_os("NAPREDUCE_WRITE_EXCERPTS").is_some() {
        write_excerpts();
    }
    let files = files::tracked();
    assert!(
        files.len() > 50,
        "only {} files found: is this the whole repository?",
        files.len()
    );
    let mut report = String::new();
    for &(sentence, rule) in RULES {
        let violations = rule(&files);
        if !violations.is_empty() {
            writeln!(report, "\n{sentence} ({} times not):", violations.len()).unwrap();
            for violation in violations {
                writeln!(report, "  {violation}").unwrap();
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}
