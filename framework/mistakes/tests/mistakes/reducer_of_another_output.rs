//! Adds a reducer that writes text to a stage that writes records of one length.
//! The expected error is in the `.stderr` file.
use napreduce::output::{FixedBytes, Text};
use napreduce::{Emit, Job, Output, Reducer, TaskError, Values};

#[derive(Clone)]
struct Totals;

impl Reducer for Totals {
    type Group = String;
    type Key = String;
    type Value = u64;
    type Output = Text;

    fn reduce(
        &mut self,
        line: &str,
        values: &mut Values<'_, String, u64>,
        out: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        out.emit(line, values.sum());
        Ok(())
    }
}

fn main() {
    let _ = Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1))
        .output(FixedBytes { length: 8 })
        .reducer(Totals);
}
