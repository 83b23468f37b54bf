use std::collections::HashMap;
use std::{env, fs, io};

use rayon::prelude::*;

/// The places of each word, as PATH:LINE.
fn main() -> io::Result<()> {
    let files = env::args().skip(1).map(|path| Ok((fs::read_to_string(&path)?, path)));
    let files = files.collect::<io::Result<Vec<_>>>()?;
    let index = files
        .par_iter()
        .flat_map_iter(|(text, path)| (1..).zip(text.lines()).map(move |(number, line)| (path, number, line)))
        .flat_map_iter(|(path, number, line)| {
            line.split_ascii_whitespace().map(move |word| (word, format!("{path}:{number}")))
        })
        .fold(HashMap::<&str, Vec<String>>::new, |mut index, (word, place)| {
            index.entry(word).or_default().push(place);
            index
        })
        .reduce(HashMap::new, |mut index, more| {
            more.into_iter().for_each(|(word, places)| index.entry(word).or_default().extend(places));
            index
        });
    index.iter().for_each(|(word, places)| println!("{word}\t{}", places.join(" ")));
    Ok(())
}
