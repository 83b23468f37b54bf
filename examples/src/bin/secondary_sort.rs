//! Computes how much warmer each city was than at its previous reading: `secondary-sort INPUT... --output
//! DIR`.
//!
//! The key groups by city and orders the readings of a city by date, whatever the order of the input.

use napreduce::{Emit, Job, Program};

fn changes() -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<(String, String), i64>| {
            let wrong =
                || format!("expected CITY,DATE,DEGREES with whole degrees, but found {line:?}");
            let (city, reading) = line.split_once(',').ok_or_else(wrong)?;
            let (date, degrees) = reading.split_once(',').ok_or_else(wrong)?;
            out.emit((city, date), degrees.parse().map_err(|_| wrong())?);
            Ok::<(), String>(())
        })
        .group_by::<String>()
        .reduce(|city, readings, out| {
            let mut before = None;
            while let Some(((_, date), degrees)) = readings.next_entry() {
                if let Some(before) = before.replace(degrees) {
                    out.emit((city, date), degrees - before);
                }
            }
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Computes how much warmer each city was than at its previous reading, from lines CITY,DATE,DEGREES")
        .examples("secondary-sort readings.csv --output changes")
        .main(changes)
}
