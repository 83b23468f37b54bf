//! Adds a reducer of numbers to a map that emits text as keys.
//! The expected error is in the `.stderr` file.
use napreduce::output::Text;
use napreduce::{Emit, Job, Output, Reducer, TaskError, Values};

#[derive(Clone)]
struct Totals;

impl Reducer for Totals {
    type Group = u64;
    type Key = u64;
    type Value = u64;
    type Output = Text;

    fn reduce(
        &mut self,
        number: u64,
        values: &mut Values<'_, u64, u64>,
        out: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        out.emit(number, values.sum());
        Ok(())
    }
}

fn main() {
    let _ = Job::text().map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1)).reducer(Totals);
}
