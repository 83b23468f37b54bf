//! Reads Parquet and writes csv with the number of late flights per carrier and their delays: `delays flights
//! --output DIR`. Other columns are not read.

use napreduce::rows::Csv;
use napreduce::{Emit, Job, Program, borrowed};
use serde::{Deserialize, Serialize};

/// A row; `carrier` borrows from the column.
#[derive(Deserialize)]
struct Flight<'a> {
    carrier: &'a str,
    delay: Option<i64>,
}

#[derive(Serialize)]
struct CarrierDelays<'a> {
    carrier: &'a str,
    late: u64,
    mean: f64,
    longest: i64,
}

fn delays() -> Job<()> {
    Job::parquet::<borrowed!(Flight)>()
        .map(|flight: Flight, out: &mut Emit<String, (u64, i128, i64)>| {
            if let Some(delay) = flight.delay {
                out.emit(flight.carrier, (1, delay.into(), delay));
            }
        })
        .combine(|(late, sum, longest), more| {
            *late += more.0;
            *sum += more.1;
            *longest = more.2.max(*longest);
        })
        .output(Csv::default())
        .reduce_total(|carrier, (late, sum, longest), out| {
            out.emit(&CarrierDelays {
                carrier,
                late,
                mean: sum as f64 / late as f64,
                longest,
            });
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Counts the late flights of each carrier, with mean and longest delay, as csv")
        .examples("delays flights --output delays")
        .main(delays)
}
