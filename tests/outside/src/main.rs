//! Adds up the numbers of each name.

use napreduce::builder::BadRecord;
use napreduce::{Emit, Job};

fn sums() -> Job<(String, u64)> {
    Job::text()
        .map(
            |line: &str, out: &mut Emit<String, u64>| -> Result<(), BadRecord> {
                let (name, number) = line
                    .split_once(' ')
                    .ok_or_else(|| BadRecord::new("expected NAME NUMBER"))?;
                out.emit(name, number.parse()?);
                Ok(())
            },
        )
        .sum()
}

fn main() -> std::process::ExitCode {
    napreduce::main(sums)
}
