//! A key type of one's own that derives nothing.
//! Does not own what is said of that, which stands beside it.
use napreduce::{Emit, Job};

struct City;

fn main() {
    let _ = Job::text().map(|_: &str, _: &mut Emit<City, u64>| {});
}
