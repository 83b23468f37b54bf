//! Clusters points around centres: `kmeans INPUT... --output DIR --centre X,Y [--centre X,Y]...`.
//!
//! Runs one job per round until no centre moves. A centre without points is dropped. Coordinates are
//! integers, so sums do not depend on the order of the points.

use clap::Args;
use napreduce::builder::Sum;
use napreduce::{Driver, Emit, Job, Program};
use serde::{Deserialize, Serialize};

const ROUNDS_MAX: u32 = 20;
type Point = (i64, i64);

#[derive(Debug, Clone, Args, Serialize, Deserialize)]
struct Centres {
    /// Initial centre; repeated for each cluster
    #[arg(long = "centre", value_name = "X,Y", required = true, allow_hyphen_values = true, value_parser = point)]
    centres: Vec<Point>,
}

fn point(text: &str) -> Result<Point, String> {
    let numbers = text
        .split_once(',')
        .and_then(|(x, y)| Some((x.parse().ok()?, y.parse().ok()?)));
    numbers.ok_or_else(|| format!("expected two integers X,Y, but found {text:?}"))
}

/// The square of a distance, in a type that holds it.
fn square(one: i64, other: i64) -> i128 {
    let distance = i128::from(one) - i128::from(other);
    distance.saturating_pow(2)
}

/// One round: writes the new position of each centre.
fn round(Centres { centres }: &Centres) -> Job {
    let centres = centres.clone();
    Job::text()
        .map(
            move |line: &str, out: &mut Emit<Point, (i128, i128, i128)>| -> Result<(), String> {
                let (x, y) = point(line)?;
                let square =
                    |centre: &&Point| square(x, centre.0).saturating_add(square(y, centre.1));
                let nearest = centres
                    .iter()
                    .min_by_key(square)
                    .ok_or("there are no centres")?;
                out.emit(*nearest, (x.into(), y.into(), 1));
                Ok(())
            },
        )
        .combine(Sum::add)
        .reduce_total(|_, (x, y, points), out| {
            out.emit(format!("{},{}", x / points, y / points), ())
        })
}

fn drive(driver: &mut Driver, start: &Centres) -> Result<(), Box<dyn std::error::Error>> {
    let mut now = start.clone();
    driver.expect_jobs(ROUNDS_MAX);
    for _ in 1..ROUNDS_MAX {
        let moved = driver
            .job(round)
            .parameters(&now)
            .reduces(1)
            .dataset()?
            .collect()?;
        let moved = moved
            .iter()
            .map(|line| point(line))
            .collect::<Result<_, _>>()?;
        if std::mem::replace(&mut now.centres, moved) == now.centres {
            break;
        }
    }
    driver.job(round).parameters(&now).reduces(1).run()?;
    Ok(())
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Moves centres to the middle of the points around them, until none moves")
        .examples("kmeans points.csv --output centres --centre 0,0 --centre 10,10")
        .drive(drive)
}
