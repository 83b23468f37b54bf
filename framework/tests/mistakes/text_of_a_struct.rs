//! Writes a struct as a field of a line of text.
//! Does not own what is said of that, which stands beside it.
use napreduce::Job;

struct Point;

fn main() {
    let _ = Job::text().map_only(|_: &str, out| out.emit(Point, ()));
}
