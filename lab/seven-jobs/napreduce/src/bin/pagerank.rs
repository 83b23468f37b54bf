use napreduce::program::Error;
use napreduce::{Driver, Emit, Job, Program};

/// The rank of a page, and its links.
type Page = (f64, String);

/// Reads lines PAGE LINK...
fn start() -> Job<(String, Page)> {
    Job::text()
        .flat_map(|line: &str| {
            line.split_once(' ').map(|(page, links)| (page.to_owned(), (1.0, links.to_owned())))
        })
        .first()
}

fn round() -> Job<(String, Page)> {
    Job::records::<String, Page>()
        .map(|(page, (rank, links)), out: &mut Emit<String, Page>| {
            let share = 0.85 * rank / links.split(' ').count() as f64;
            links.split(' ').for_each(|link| out.emit(link, (share, "")));
            out.emit(page, (0.15, links));
        })
        .reduce_by_key(|(rank, links), (share, more)| {
            *rank += share;
            links.push_str(&more);
        })
}

fn finish() -> Job {
    Job::records::<String, Page>().map_only(|(page, (rank, _)), out| out.emit(page, rank))
}

fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
    let mut ranks = driver.job(start).dataset()?;
    loop {
        let next = driver.job(round).inputs([&ranks]).dataset()?;
        let both = ranks.collect()?.into_iter().zip(next.collect()?);
        let moved: f64 = both.map(|((_, (before, _)), (_, (after, _)))| (after - before).abs()).sum();
        ranks = next;
        if moved < 1e-6 {
            return driver.job(finish).inputs([&ranks]).run().map(drop);
        }
    }
}

fn main() -> std::process::ExitCode {
    Program::new().drive(drive)
}
