//! The path of an output where its format belongs.
//! Does not own what is said of that, which stands beside it.
use napreduce::Job;

fn main() {
    let _ = Job::text().map_only_to("out.txt", |line: &str, out| out.emit(line, ()));
}
