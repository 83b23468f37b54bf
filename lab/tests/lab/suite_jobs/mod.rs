//! Every job of the suite matches a naive program (`reference`) at several sizes, byte for byte with one
//! reduce and as sets of lines with several, and is preemption-safe.

mod data;
mod documents;
mod graphs;
mod movies;
mod reference;

use napreduce::Job;
use napreduce::testing::JobTest;

/// Sizes of the data in bytes; `NAPREDUCE_SUITE_BYTES` adds one.
fn sizes() -> Vec<u64> {
    let more = std::env::var("NAPREDUCE_SUITE_BYTES").ok();
    let more = more
        .map(|bytes| datagen::sizes::parse_bytes(&bytes).expect("NAPREDUCE_SUITE_BYTES is a size"));
    [300, 8 << 10, 2 << 20].into_iter().chain(more).collect()
}

fn test<T, J: Fn() -> Job<T>>(job: J, inputs: &[String]) -> JobTest<J> {
    inputs
        .iter()
        .fold(JobTest::new(job), |test, input| test.input(input))
}

/// Checks the output of a job with several splits and numbers of reduces.
fn check<T>(job: impl Fn() -> Job<T> + Copy, inputs: &[String], expected: &str) {
    check_with(&[], job, inputs, expected);
}

/// As `check`, with side files by name.
fn check_with<T>(
    side_files: &[(&str, &str)],
    job: impl Fn() -> Job<T> + Copy,
    inputs: &[String],
    expected: &str,
) {
    let test = || {
        side_files
            .iter()
            .fold(test(job, inputs), |test, (name, text)| {
                test.side_file(name, text)
            })
    };
    same(&test().run().text(), expected);
    let bytes: usize = inputs.iter().map(String::len).sum();
    let cut = test().split_size(bytes as u64 / 5 + 1).combine_files(false);
    same(&cut.run().text(), expected);
    let shared = test()
        .split_size(bytes as u64 / 3 + 1)
        .reduces(3)
        .run()
        .text();
    same(&sorted(&shared), &sorted(expected));
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// Reports the first difference instead of printing megabytes.
fn same(found: &str, expected: &str) {
    let different = found
        .lines()
        .zip(expected.lines())
        .position(|(one, other)| one != other);
    let at = different.unwrap_or(found.lines().count().min(expected.lines().count()));
    assert!(
        found == expected,
        "line {} is {:?} and should be {:?}",
        at + 1,
        found.lines().nth(at),
        expected.lines().nth(at)
    );
}
