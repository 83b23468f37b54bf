use std::cmp::Reverse;

use napreduce::program::Error;
use napreduce::{Driver, Job, Program, words};

fn count() -> Job<(String, u64)> {
    Job::text().flat_map(words).count()
}

/// The words that are at least as frequent as the tenth.
fn top() -> Job {
    Job::records::<String, u64>()
        .flat_map(|(word, count): (&str, u64)| Some((((), Reverse(count), word.to_owned()), ())))
        .group_by::<()>()
        .reduces(1)
        .reduce(|(), words, out| {
            let mut tenth = 0;
            for place in 1.. {
                let Some((((), Reverse(count), word), ())) = words.next_entry() else { break };
                if count < tenth {
                    break;
                }
                out.emit(word, count);
                tenth = if place == 10 { count } else { tenth };
            }
        })
}

fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
    let counts = driver.job(count).dataset()?;
    driver.job(top).inputs([&counts]).run().map(drop)
}

fn main() -> std::process::ExitCode {
    Program::new().drive(drive)
}
