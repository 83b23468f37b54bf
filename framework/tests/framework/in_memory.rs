//! Jobs over values in memory, on threads of the test.

use napreduce::run::Local;
use napreduce::testing::JobTest;
use napreduce::{Dataset, Emit, Job, words};

fn count() -> Job<(String, u64)> {
    Job::text().flat_map(words).count()
}

#[test]
fn job_over_lines_returns_values() {
    let lines = Dataset::lines(["to be or", "not to be"]).expect("lines");
    let counts =
        napreduce::job(count).inputs([&lines]).reduces(1).run_local(&Local::threads()).expect("it runs");
    let expected =
        [("be", 2), ("not", 1), ("or", 1), ("to", 2)].map(|(word, count)| (word.to_owned(), count));
    assert_eq!(counts.collect().expect("it is read back"), expected);
    let files = counts.path().to_owned();
    assert!(files.is_dir());
    drop(counts);
    assert!(!files.exists(), "a temporary output is removed with its dataset");
}

#[test]
fn job_test_returns_same_values() {
    let output = JobTest::new(count).input("to be or\nnot to be\n").run();
    assert_eq!(output.text(), "be\t2\nnot\t1\nor\t1\nto\t2\n");
}

#[test]
fn reduce_returns_its_hot_keys_in_readable_form() {
    let copies = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<String, ()>| out.emit(line, ()))
            .reduce(|line, copies, out| out.emit(line, copies.count()))
    };
    let hot = |records| {
        let others: String = (0..100).map(|number| format!("{number}\n")).collect();
        let input = format!("{}{others}", "a\tkey\n".repeat(records));
        JobTest::new(copies).input(input).reduces(2).run().counters
    };
    let counters = hot(20_000);
    assert_eq!(counters.hot_keys(), [(r#""a\tkey""#, 20_000)]);
    assert!(counters.iter().all(|(name, _)| !name.contains("key")), "a hot key is no counter");
    assert_eq!(hot(9_000).hot_keys(), []);
}
