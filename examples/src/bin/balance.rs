//! Adds up payments day by day: `balance INPUT... --output DIR`; a line of the input is `DAY,AMOUNT`.
//!
//! The reducer carries the balance from one day to the next and saves it in checkpoints. One reduce receives
//! all days in order.

use napreduce::builder::Sum;
use napreduce::output::Text;
use napreduce::{Emit, Job, Output, Program, Reducer, Resumable, TaskError, Values};

#[derive(Resumable, Clone, Default)]
struct Balance(i64);

impl Reducer for Balance {
    type Group = String;
    type Key = String;
    type Value = i64;
    type Output = Text;

    fn reduce(
        &mut self,
        day: &str,
        amounts: &mut Values<'_, String, i64>,
        out: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        Sum::add(&mut self.0, amounts.sum());
        out.emit(day, self.0);
        Ok(())
    }
}

/// Adds up payments. `tests/examples/preemption.rs` includes this job.
pub fn balance() -> Job {
    let payment = |line: &str, out: &mut Emit<String, i64>| {
        let payment = line
            .split_once(',')
            .and_then(|(day, amount)| Some((day, amount.parse().ok()?)));
        payment
            .map(|(day, amount)| out.emit(day, amount))
            .ok_or_else(|| format!("expected DAY,AMOUNT: {line:?}"))
    };
    Job::text()
        .map(payment)
        .reduces(1)
        .reducer_resumable(Balance::default())
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Adds up payments, day by day")
        .examples("balance payments.csv --output balance")
        .main(balance)
}
