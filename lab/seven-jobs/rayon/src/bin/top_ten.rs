use std::cmp::Reverse;
use std::collections::HashMap;
use std::{env, fs, io};

use rayon::prelude::*;

/// The words that are at least as frequent as the tenth.
fn main() -> io::Result<()> {
    let texts = env::args().skip(1).map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    let counts = texts
        .par_iter()
        .flat_map(|text| text.par_lines())
        .flat_map_iter(str::split_ascii_whitespace)
        .fold(HashMap::<&str, u64>::new, |mut counts, word| {
            *counts.entry(word).or_default() += 1;
            counts
        })
        .reduce(HashMap::new, |mut counts, more| {
            more.into_iter().for_each(|(word, count)| *counts.entry(word).or_default() += count);
            counts
        });
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.par_sort_by_key(|(word, count)| (Reverse(*count), *word));
    let tenth = counts.get(9).map_or(0, |(_, count)| *count);
    let top = counts.iter().take_while(|(_, count)| *count >= tenth);
    top.for_each(|(word, count)| println!("{word}\t{count}"));
    Ok(())
}
