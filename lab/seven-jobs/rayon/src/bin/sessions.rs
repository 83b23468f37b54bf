use std::{env, fs, io};

use rayon::prelude::*;

const PAUSE_SECONDS: u64 = 30 * 60;

fn visit(line: &str) -> Option<(&str, u64)> {
    let (visitor, rest) = line.split_once(' ')?;
    Some((visitor, rest.split_once(' ')?.0.parse().ok()?))
}

/// Sessions from lines VISITOR SECONDS PAGE: visitor, start, length and pages.
fn main() -> io::Result<()> {
    let log = fs::read_to_string(env::args().nth(1).unwrap_or_default())?;
    let mut visits: Vec<_> = log.par_lines().filter_map(visit).collect();
    visits.par_sort();
    for session in visits.chunk_by(|a, b| a.0 == b.0 && b.1 - a.1 <= PAUSE_SECONDS) {
        let ((visitor, start), (_, end)) = (session[0], session[session.len() - 1]);
        println!("{visitor}\t{start}\t{}\t{}", end - start, session.len());
    }
    Ok(())
}
