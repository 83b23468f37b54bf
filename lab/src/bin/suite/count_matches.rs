//! Counts a group of each match of a pattern: `count-matches INPUT... --output DIR --pattern REGEX [--group N]`. The most
//! frequent come first, then by bytes, in one part file.

use std::cmp::Reverse;

use clap::Args;
use napreduce::program::Error;
use napreduce::{Driver, Emit, Job, Program};
use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

#[derive(Debug, Args, Serialize, Deserialize)]
pub struct Search {
    /// Regular expression to look for
    #[arg(long, short = 'e', value_name = "REGEX", value_parser = checked)]
    pub pattern: String,

    /// Which group of a match is counted; 0 is all of it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub group: usize,
}

/// Checks the pattern before any task starts.
fn checked(pattern: &str) -> Result<String, regex::Error> {
    Regex::new(pattern).map(|_| pattern.to_owned())
}

pub fn count(search: &Search) -> Job<(Vec<u8>, u64)> {
    let regex =
        Regex::new(&search.pattern).expect("patterns are checked when the command line is read");
    let group = search.group;
    Job::bytes()
        .map(move |line: &[u8], out: &mut Emit<Vec<u8>, u64>| {
            for found in regex
                .captures_iter(line)
                .filter_map(|captures| captures.get(group))
            {
                out.emit(found.as_bytes(), 1);
            }
        })
        .sum()
}

pub fn by_count() -> Job {
    Job::records::<Vec<u8>, u64>()
        .map(
            |(found, count), out: &mut Emit<(Reverse<u64>, Vec<u8>), ()>| {
                out.emit((Reverse(count), found), ())
            },
        )
        .reduce(|(Reverse(count), found), _, out| out.emit(count, found))
}

fn drive(driver: &mut Driver, search: &Search) -> Result<(), Error> {
    let groups = Regex::new(&search.pattern).map_or(0, |regex| regex.captures_len());
    if search.group >= groups {
        return Err(Error::Usage(format!(
            "the pattern has no group {}; choose 0 to {}",
            search.group,
            groups - 1
        )));
    }
    let counts = driver.job(count).parameters(search).dataset()?;
    driver
        .job(by_count)
        .inputs([&counts])
        .reduces(1)
        .run()
        .map(drop)
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Counts what matches a regular expression, the most frequent first")
        .examples(
            "count-matches README.md --output found --pattern 'nap[a-z]*'
             count-matches 'logs/*.log' --output codes --pattern 'status=([0-9]+)' --group 1",
        )
        .drive(drive)
}
