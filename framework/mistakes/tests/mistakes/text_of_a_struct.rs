//! Writes a struct as a field of a text line.
//! The expected error is in the `.stderr` file.
use napreduce::Job;

struct Point;

fn main() {
    let _ = Job::text().map_only(|_: &str, out| out.emit(Point, ()));
}
