//! A user's value type without a derive.
//! The expected error is in the `.stderr` file.
use napreduce::{Emit, Job};

struct Reading;

fn main() {
    let _ = Job::text().map(|_: &str, _: &mut Emit<String, Reading>| {});
}
