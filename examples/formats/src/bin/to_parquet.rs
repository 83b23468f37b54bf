//! Converts csv rows to Parquet: `to-parquet flights.csv --output DIR`. The fields of a struct are the
//! columns.

use napreduce::rows::Parquet;
use napreduce::{Job, Program};
use serde::{Deserialize, Serialize};

/// A row; `delay` may be empty.
#[derive(Serialize, Deserialize)]
struct Flight {
    carrier: String,
    delay: Option<i64>,
}

fn to_parquet() -> Job<Flight> {
    Job::csv::<Flight>().map_only_to(Parquet::<Flight>::default(), |flight: Flight, out| {
        out.emit(&flight)
    })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Writes the columns carrier and delay of csv files as Parquet")
        .examples("to-parquet flights.csv --output flights")
        .main(to_parquet)
}
