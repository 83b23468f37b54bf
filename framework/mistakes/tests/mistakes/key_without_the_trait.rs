//! A user's key type without a derive.
//! The expected error is in the `.stderr` file.
use napreduce::{Emit, Job};

struct City;

fn main() {
    let _ = Job::text().map(|_: &str, _: &mut Emit<City, u64>| {});
}
