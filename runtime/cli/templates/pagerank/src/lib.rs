//! The jobs of this program and the driver that runs them, each on the output of the one before.

use std::cmp::Reverse;

use napreduce::program::Error;
use napreduce::records::Records;
use napreduce::{Driver, Emit, Job};

const ROUNDS: u32 = 10;

/// A rank of 1. Ranks are integers, because a sum of integers does not depend on their order.
const ONE: u64 = 1_000_000;

/// The name of a page, its rank, and the pages to which it links, separated by spaces.
type Page = (String, (u64, String));

/// By the name of a page: a share of the rank of another page, or its own links.
type Shares = Emit<String, (u64, String)>;

/// Sorted from the highest rank down.
type ByRank = Emit<(Reverse<u64>, String), ()>;

/// Collects the links of each page, from lines FROM TO.
pub fn links() -> Job<Page> {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, String>| {
            line.split_once(' ')
                .map(|(from, to)| out.emit(from, to))
                .ok_or_else(|| format!("expected FROM TO, but found {line:?}"))
        })
        .output(Records::default())
        .reduce(|page, targets, out| {
            let mut links = String::new();
            while let Some(target) = targets.next() {
                links += if links.is_empty() { "" } else { " " };
                links += target;
            }
            out.emit(page, (ONE, links.as_str()));
        })
}

/// One round: each page divides its rank among its links.
pub fn round() -> Job<Page> {
    Job::records::<String, (u64, String)>()
        .map(|(page, (rank, links)), out: &mut Shares| {
            out.emit(page, (0, links));
            let targets = links.split(' ').filter(|target| !target.is_empty());
            let share = rank / (targets.clone().count().max(1) as u64);
            for target in targets {
                out.emit(target, (share, ""));
            }
        })
        .output(Records::default())
        .reduce(|page, shares, out| {
            let (mut rank, mut own) = (0, String::new());
            while let Some((share, links)) = shares.next() {
                rank += share;
                own += links;
            }
            out.emit(page, (ONE * 15 / 100 + rank * 85 / 100, own.as_str()));
        })
}

/// Sorts the pages from the highest rank down.
pub fn ranks() -> Job {
    Job::records::<String, (u64, String)>()
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
    driver.job(ranks).inputs([&pages]).run().map(drop)
}
