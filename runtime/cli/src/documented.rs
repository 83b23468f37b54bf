//! Tests that all commands and options named in README, docs/ and CONTRIBUTING exist.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};

use super::Arguments;

/// Commands that pass their arguments on to a program with its own options.
const PASS_ARGUMENTS_ON: [&str; 3] = ["lab", "streaming", "frames"];

/// Words that end a command line in a shell.
const ENDS: [&str; 8] = ["#", "--", "|", "||", "&", "&&", ">", ";"];

/// Whether a word is a placeholder, such as `<COMMAND>` or `JOB`.
fn is_placeholder(word: &str) -> bool {
    word.starts_with(['-', '<', '[', '.']) || word.chars().any(char::is_uppercase)
}

/// Returns the problem with a line that begins with `nap`, if any.
fn problem_in(line: &str) -> Option<String> {
    let mut root = Arguments::command();
    root.build();
    let mut command: &Command = &root;
    let words = line
        .split_whitespace()
        .map(|word| word.trim_end_matches([',', ':', '.', ')', ';']));
    let mut words = words
        .skip(1)
        .take_while(|word| !ENDS.contains(word))
        .peekable();
    // Global options may come first, each with its value.
    while words.next_if(|word| word.starts_with("--")).is_some() {
        words.next();
    }
    while let Some(word) = words.peek().copied().filter(|_| command.has_subcommands()) {
        if is_placeholder(word) {
            break;
        }
        // Pages may name alternatives, in a table with backslashes.
        let names: Vec<&str> = word
            .split(['/', '|'])
            .map(|name| name.trim_end_matches('\\'))
            .collect();
        let Some(found) = names
            .iter()
            .map(|name| command.find_subcommand(name))
            .collect::<Option<Vec<_>>>()
        else {
            return Some(format!("no command {word}"));
        };
        if command.get_name() == "nap" && PASS_ARGUMENTS_ON.contains(&word) {
            return None;
        }
        command = found[0];
        words.next();
    }
    let options: Vec<&str> = words
        .filter_map(|word| word.trim_start_matches('[').strip_prefix("--"))
        .collect();
    let name = |option: &str| -> String {
        option
            .chars()
            .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '-')
            .collect()
    };
    options.into_iter().map(name).find_map(|option| {
        let mut known = command
            .get_arguments()
            .filter_map(|argument| argument.get_long());
        let is_known =
            option.is_empty() || option == "version" || known.any(|known| known == option);
        (!is_known).then(|| {
            format!(
                "{} has no --{option}",
                command.get_bin_name().unwrap_or("nap")
            )
        })
    })
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of pages") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "md") {
            found.push(path);
        }
    }
}

/// Returns the command lines of a page: lines in code blocks, and code spans, that begin with `nap`.
fn command_lines(page: &str) -> Vec<(usize, String)> {
    let mut in_block = false;
    let mut lines = Vec::new();
    for (index, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            let line = line.trim_start().trim_start_matches("$ ");
            lines.extend(
                line.starts_with("nap ")
                    .then(|| (index + 1, line.to_owned())),
            );
        } else {
            let quoted = line
                .split('`')
                .skip(1)
                .step_by(2)
                .filter(|quoted| quoted.starts_with("nap "));
            lines.extend(quoted.map(|quoted| (index + 1, quoted.to_owned())));
        }
    }
    lines
}

#[test]
fn commands_and_options_in_pages_exist() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![top.join("README.md"), top.join("CONTRIBUTING.md")];
    pages(&top.join("docs"), &mut files);
    let mut checked = 0;
    let mut problems = Vec::new();
    for file in files {
        let page = fs::read_to_string(&file).expect("the page can be read");
        for (number, line) in command_lines(&page) {
            checked += 1;
            problems.extend(
                problem_in(&line).map(|why| format!("{}:{number}: {why}: {line}", file.display())),
            );
        }
    }
    assert!(checked > 100, "only {checked} commands found");
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn problem_in_reports_unknown_commands_and_options() {
    for right in [
        "nap job list --state failed",
        "nap sim --workload X",
        "nap lab dream --any",
        "nap job JOB",
    ] {
        assert_eq!(problem_in(right), None, "{right}");
    }
    assert_eq!(
        problem_in("nap job dream last"),
        Some("no command dream".to_owned())
    );
    assert_eq!(
        problem_in("nap job kill 7 --hard"),
        Some("nap job kill has no --hard".to_owned())
    );
    assert_eq!(problem_in("nap job kill 7 # --hard"), None);
}
