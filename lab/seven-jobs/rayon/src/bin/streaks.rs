use std::{env, fs, io};

use rayon::prelude::*;

fn visit(line: &str) -> Option<(&str, u64)> {
    let (user, day) = line.split_once(' ')?;
    Some((user, day.parse().ok()?))
}

/// The longest run of consecutive days of each user, from lines USER DAY.
fn main() -> io::Result<()> {
    let text = fs::read_to_string(env::args().nth(1).unwrap_or_default())?;
    let mut visits: Vec<_> = text.par_lines().filter_map(visit).collect();
    visits.par_sort();
    visits.dedup();
    for days in visits.chunk_by(|a, b| a.0 == b.0) {
        let longest = days.chunk_by(|a, b| a.1 + 1 == b.1).map(<[_]>::len).max().unwrap_or_default();
        println!("{}\t{longest}", days[0].0);
    }
    Ok(())
}
