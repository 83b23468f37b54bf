//! A value type of one's own that derives nothing.
//! Does not own what is said of that, which stands beside it.
use napreduce::{Emit, Job};

struct Reading;

fn main() {
    let _ = Job::text().map(|_: &str, _: &mut Emit<String, Reading>| {});
}
