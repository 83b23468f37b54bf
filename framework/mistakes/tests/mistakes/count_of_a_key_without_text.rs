//! Finishes a job with pairs whose key has no text form.
//! The expected error is in the `.stderr` file.
use napreduce::{Emit, Job, Key};

#[derive(Key)]
struct City(u64);

fn main() {
    let _ = Job::text().map(|_: &str, out: &mut Emit<City, ()>| out.emit(City(1), ())).count();
}
