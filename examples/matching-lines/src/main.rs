//! Keeps the lines that match: `matching-lines INPUT... --output DIR --pattern REGEX [--pattern REGEX]...`.
//!
//! A job without a reduce: the lines keep the order of the input. A counter per pattern counts its matches.

use clap::Args;
use napreduce::{Job, Program, counter};
use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

#[derive(Debug, Args, Serialize, Deserialize)]
struct Patterns {
    /// Regular expression to look for; may be given several times
    #[arg(long = "pattern", short = 'e', value_name = "REGEX", required = true, value_parser = checked)]
    patterns: Vec<String>,
}

/// Checks a pattern when the command line is parsed, before any task starts.
fn checked(pattern: &str) -> Result<String, regex::Error> {
    Regex::new(pattern).map(|_| pattern.to_owned())
}

fn matching_lines(parameters: &Patterns) -> Job {
    let patterns: Vec<_> = parameters
        .patterns
        .iter()
        .map(|pattern| {
            let regex =
                Regex::new(pattern).expect("patterns are checked when the command line is read");
            (regex, counter(&format!("lines matching {pattern}")))
        })
        .collect();
    Job::bytes().map_only(move |line: &[u8], out| {
        let mut found = false;
        for (regex, lines) in &patterns {
            if regex.is_match(line) {
                lines.add(1);
                found = true;
            }
        }
        if found {
            out.emit(line, ());
        }
    })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Keeps the lines that match a regular expression, and counts them by pattern")
        .examples(
            "matching-lines 'logs/*.log' --output errors --pattern 'ERROR|FATAL'
             matching-lines README.md --output found -e cargo -e nap",
        )
        .main(matching_lines)
}
