//! The path of an input where its format belongs.
//! Does not own what is said of that, which stands beside it.
use napreduce::Job;

fn main() {
    let _ = Job::input("data.txt").map_only(|line, out| out.emit(line, ()));
}
