use std::collections::{HashMap, HashSet};
use std::{env, fs, io};

use rayon::prelude::*;

/// Counts words that are not in a list: `stop_words STOP INPUT...`.
fn main() -> io::Result<()> {
    let mut paths = env::args().skip(1);
    let stop = fs::read_to_string(paths.next().unwrap_or_default())?;
    let stop: HashSet<&str> = stop.lines().collect();
    let texts = paths.map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    let counts = texts
        .par_iter()
        .flat_map(|text| text.par_lines())
        .flat_map_iter(str::split_ascii_whitespace)
        .filter(|word| !stop.contains(word))
        .fold(HashMap::<&str, u64>::new, |mut counts, word| {
            *counts.entry(word).or_default() += 1;
            counts
        })
        .reduce(HashMap::new, |mut counts, more| {
            more.into_iter().for_each(|(word, count)| *counts.entry(word).or_default() += count);
            counts
        });
    counts.iter().for_each(|(word, count)| println!("{word}\t{count}"));
    Ok(())
}
