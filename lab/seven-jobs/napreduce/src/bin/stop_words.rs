use std::collections::HashSet;
use std::fs;
use std::io;

use napreduce::program::SideFile;
use napreduce::{Emit, Job, words};

/// Counts words that are not in a list: `stop_words INPUT... --files stop.txt --output DIR`.
fn count() -> Job<(String, u64)> {
    let stop = SideFile::new("stop.txt", |path| -> io::Result<HashSet<String>> {
        Ok(fs::read_to_string(path)?.lines().map(str::to_owned).collect())
    });
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, u64>| {
            words(line).filter(|word| !stop.get().contains(*word)).for_each(|word| out.emit(word, 1));
        })
        .sum()
}

fn main() -> std::process::ExitCode {
    napreduce::main(count)
}
