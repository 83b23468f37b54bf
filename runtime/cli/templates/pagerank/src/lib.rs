//! The jobs of this program and the driver that runs them, each on the output of the one before.

use std::cmp::Reverse;

use napreduce::program::Error;
use napreduce::{Driver, Emit, Job};

const ROUNDS: u32 = 10;

/// A rank of 1. Ranks are integers, because a sum of integers does not depend on their order.
const ONE: u64 = 1_000_000;

/// The rank of a page or a share of it, and the pages to which it links, separated by spaces.
type Rank = (u64, String);

/// Sorted from the highest rank down.
type ByRank = Emit<(Reverse<u64>, String), ()>;

/// Collects the links of each page, from lines FROM TO.
pub fn links() -> Job<(String, Rank)> {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, String>| {
            line.split_once(' ')
                .map(|(from, to)| out.emit(from, to))
                .ok_or_else(|| format!("expected FROM TO, but found {line:?}"))
        })
        .map_groups(|page, targets| {
            let targets: Vec<String> = targets.owned().collect();
            (page.to_owned(), (ONE, targets.join(" ")))
        })
}

/// One round: each page divides its rank among its links.
pub fn round() -> Job<(String, Rank)> {
    Job::records::<String, Rank>()
        .map(|(page, (rank, links)), out: &mut Emit<String, Rank>| {
            out.emit(page, (0, links));
            let targets = links.split(' ').filter(|target| !target.is_empty());
            let share = rank / (targets.clone().count().max(1) as u64);
            targets.for_each(|target| out.emit(target, (share, "")));
        })
        .map_groups(|page, shares| {
            let mut rank = 0;
            let mut own = String::new();
            while let Some((share, links)) = shares.next() {
                rank += share;
                own += links;
            }
            (page.to_owned(), (ONE * 15 / 100 + rank * 85 / 100, own))
        })
}

/// Sorts the pages from the highest rank down.
pub fn ranks() -> Job {
    Job::records::<String, Rank>()
        .map(|(page, (rank, _)), out: &mut ByRank| {
            out.emit((Reverse(rank), page), ());
        })
        .reduces(1)
        .reduce(|(Reverse(rank), page), _, out| out.emit(page, rank as f64 / ONE as f64))
}

/// Runs the jobs. Pages are removed when no job needs them any more.
pub fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
    driver.expect_jobs(ROUNDS + 2);
    let mut pages = driver.job(links).dataset()?;
    for _ in 0..ROUNDS {
        pages = driver.job(round).inputs([&pages]).dataset()?;
    }
    driver.job(ranks).inputs([&pages]).run()?;
    Ok(())
}
