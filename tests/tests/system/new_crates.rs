//! `nap new`: the files of each template, and what is refused. `.ci/run` builds the crates and runs their
//! commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use napreduce_tests::{Ended, Folder, program, run};

/// The templates that are Rust.
const RUST: [&str; 4] = ["wordcount", "join", "sessions", "pagerank"];

/// The lines of a `main.rs`, at most.
const MAIN_LINES_MAX: usize = 14;

fn new(folder: &Folder, arguments: &[&str]) -> Ended {
    run(program("nap")
        .current_dir(folder.root())
        .arg("new")
        .args(arguments))
}

/// Returns the files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.file_type().expect("a type").is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn new_crates_are_formatted_and_have_short_mains() {
    let folder = Folder::new();
    for template in RUST {
        let name = format!("my-{template}");
        let printed = new(&folder, &[&name, "--template", template])
            .succeeded()
            .stdout;
        let commands = format!("next:\n  cd {name}\n  cargo test\n  cargo run -- ");
        assert!(printed.contains(&commands), "{printed}");
        let sources: Vec<PathBuf> = files(&folder.path(&name))
            .into_iter()
            .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
            .collect();
        assert_eq!(sources.len(), 3, "{sources:?}");
        run(Command::new("rustfmt")
            .args(["--check", "--edition", "2024"])
            .args(&sources))
        .succeeded();
        let main = fs::read_to_string(folder.path(&name).join("src/main.rs")).expect("a main");
        assert!(
            main.lines().count() <= MAIN_LINES_MAX && main.contains(&name.replace('-', "_")),
            "{main}"
        );
    }
}

#[test]
fn new_python_program_names_the_module_of_the_checkout() {
    let folder = Folder::new();
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("a checkout");
    let path = checkout.to_str().expect("text");
    let printed = new(
        &folder,
        &["below/words", "--template", "python", "--path", path],
    )
    .succeeded()
    .stdout;
    let commands = format!(
        "next:\n  cd below/words\n  export PYTHONPATH=\"{path}/python\"\n  python3 -m unittest\n  \
         python3 wordcount.py data --output out\n  cat out/part-*\n"
    );
    assert!(printed.ends_with(&commands), "{printed}");
}

#[test]
fn existing_directory_and_wrong_names_are_refused() {
    let folder = Folder::new();
    let kept = folder.write("words/kept", "mine");
    new(&folder, &["words"]).failed(2, &["words: already exists; choose another name"]);
    folder.write("file", "mine");
    new(&folder, &["file"]).failed(2, &["file: already exists; choose another name"]);
    assert_eq!(fs::read_to_string(kept).expect("it is there"), "mine");
    new(&folder, &["1st"]).failed(
        2,
        &["invalid name \"1st\": it must begin with a letter or _"],
    );
    new(&folder, &["x/.."]).failed(2, &["invalid name \"x/..\": it is empty; name the crate"]);
    new(&folder, &["test"]).failed(2, &["invalid name \"test\": the name is reserved"]);
    new(&folder, &["a", "--template", "sort"]).failed(2, &["invalid value 'sort'", "pagerank"]);
    new(&folder, &["a", "--path", "words"])
        .failed(2, &["--path words: not a checkout of napreduce"]);
    let left = fs::read_dir(folder.root()).expect("a folder").count();
    assert_eq!((left, files(folder.root()).len()), (2, 2));
}
