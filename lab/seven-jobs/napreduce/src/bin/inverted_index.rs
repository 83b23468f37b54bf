use napreduce::{Emit, Job, words};

/// The places of each word, as PATH:LINE.
fn index() -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, String>| {
            let place = out.input();
            let place = format!("{}:{}", place.path().display(), place.line().unwrap_or_default());
            words(line).for_each(|word| out.emit(word, &place));
        })
        .reduce(|word, places, out| out.emit(word, places.owned().collect::<Vec<_>>().join(" ")))
}

fn main() -> std::process::ExitCode {
    napreduce::main(index)
}
