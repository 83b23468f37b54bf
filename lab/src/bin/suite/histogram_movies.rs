//! A histogram of mean ratings: `histogram-movies INPUT... --output DIR`. Bins are half a star wide, named by their upper
//! ends.

use napreduce::builder::Sum;
use napreduce::{Emit, Job, Program, counter};
use napreduce_lab::records::Movie;

pub fn histogram() -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<u32, u64>| {
            let mut sum = 0u64;
            let mut count = 0u64;
            for review in Movie::parse(line)?.reviews() {
                (sum, count) = (sum + u64::from(review?.rating), count + 1);
            }
            match bin(sum, count) {
                Some(bin) => out.emit(bin, 1),
                None => counter!("movies without reviews").add(1),
            }
            Ok::<(), String>(())
        })
        .combine(Sum::add)
        .reduce(|bin, counts, out| out.emit(format!("{}.{}", bin / 10, bin % 10), counts.sum()))
}

/// The upper end of the bin of a mean, in tenths; a mean of exactly 3.5 is in the bin of 4.0.
fn bin(sum: u64, count: u64) -> Option<u32> {
    let half = u32::try_from((2 * sum).checked_div(count)?).ok()?;
    Some((half + 1) * 5)
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Counts movies by their mean rating, in bins of half a star")
        .examples("histogram-movies movies --output histogram")
        .main(histogram)
}
