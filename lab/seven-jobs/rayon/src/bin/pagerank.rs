use std::collections::HashMap;
use std::{env, fs, io};

use rayon::prelude::*;

fn main() -> io::Result<()> {
    let text = fs::read_to_string(env::args().nth(1).unwrap_or_default())?;
    let pages: Vec<(&str, Vec<&str>)> = text
        .par_lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(page, links)| (page, links.split(' ').collect()))
        .collect();
    let mut ranks: HashMap<&str, f64> = pages.iter().map(|(page, _)| (*page, 1.0)).collect();
    loop {
        let shares = pages.par_iter().flat_map_iter(|(page, links)| {
            let share = 0.85 * ranks[page] / links.len() as f64;
            links.iter().map(move |link| (*link, share)).chain([(*page, 0.15)])
        });
        let next = shares
            .fold(HashMap::<&str, f64>::new, |mut next, (page, share)| {
                *next.entry(page).or_default() += share;
                next
            })
            .reduce(HashMap::new, |mut next, more| {
                more.into_iter().for_each(|(page, share)| *next.entry(page).or_default() += share);
                next
            });
        let moved: f64 = next.par_iter().map(|(page, rank)| (rank - ranks[page]).abs()).sum();
        ranks = next;
        if moved < 1e-6 {
            ranks.iter().for_each(|(page, rank)| println!("{page}\t{rank}"));
            return Ok(());
        }
    }
}
