//! Jobs over values in memory, on threads of the test.

use std::time::Duration;

use napreduce::builder::BadRecord;
use napreduce::input::Skip;
use napreduce::output::{NamedOutput, Text};
use napreduce::program::{Error, JobError};
use napreduce::records::Records;
use napreduce::run::Local;
use napreduce::testing::JobTest;
use napreduce::{Dataset, Emit, Job, JobRequest, Output, TaskError, words};

fn count() -> Job<(String, u64)> {
    Job::text().flat_map(words).count()
}

#[test]
fn job_over_lines_returns_values() {
    let lines = Dataset::lines(["to be or", "not to be"]).expect("lines");
    let counts = napreduce::job(count)
        .inputs([&lines])
        .reduces(1)
        .run(&Local::threads())
        .expect("it runs");
    let expected =
        [("be", 2), ("not", 1), ("or", 1), ("to", 2)].map(|(word, count)| (word.to_owned(), count));
    assert_eq!(counts.collect().expect("it is read back"), expected);
    let files = counts.path().to_owned();
    assert!(files.is_dir());
    drop(counts);
    assert!(
        !files.exists(),
        "a temporary output is removed with its dataset"
    );
}

#[test]
fn datasets_are_joined_by_key() {
    let pairs = |pairs: &[(u64, &str)]| {
        let owned = pairs.iter().map(|(id, text)| (*id, (*text).to_owned()));
        Dataset::<(u64, String)>::of(owned).expect("pairs")
    };
    let users = pairs(&[(1, "ann"), (2, "bob"), (2, "bea")]);
    let orders = pairs(&[(2, "tea"), (3, "ink"), (2, "nib")]);
    let run = |join: JobRequest<(String, String)>| {
        let joined = join.reduces(1).run(&Local::threads()).expect("it runs");
        drop((users.clone(), orders.clone()));
        let pairs = joined.collect().expect("it is read back");
        pairs
            .into_iter()
            .map(|(user, order)| format!("{user} {order}"))
            .collect::<Vec<_>>()
    };
    let inner = ["bob tea", "bea tea", "bob nib", "bea nib"];
    let join = users.join(&orders);
    assert_eq!(
        run(join.inner(|_, user, order, out| out.emit(user, order))),
        inner
    );
    let left = join.left(|_, user, order, out| out.emit(user, order.map_or("-", String::as_str)));
    assert_eq!(run(left), [&["ann -"], &inner[..]].concat());
    let right = join.right(|_, user, order, out| out.emit(user.map_or("-", String::as_str), order));
    assert_eq!(run(right), [&inner[..], &["- ink"]].concat());
    let full = join.full(|_, user, order, out| {
        out.emit(
            user.map_or("-", String::as_str),
            order.map_or("-", String::as_str),
        );
    });
    assert_eq!(run(full), [&["ann -"], &inner[..], &["- ink"]].concat());
}

#[test]
fn bad_input_is_skipped_up_to_the_limit() {
    let halves = || {
        Job::text().map_only(|line: &str, out| -> Result<(), BadRecord> {
            out.emit(line.parse::<u64>()? / 2, ());
            Ok(())
        })
    };
    let lines = Dataset::lines(["4", "x", "6", "y"]).expect("lines");
    let run = |skip| {
        napreduce::job(halves)
            .inputs([&lines])
            .on_bad_input(skip)
            .run(&Local::threads())
    };
    for skip in [Skip::All, Skip::AtMost(2)] {
        let halves = run(skip).expect("two lines are skipped");
        assert_eq!(halves.collect().expect("lines"), ["2", "3"]);
    }
    for (skip, remedy) in [
        (
            Skip::None,
            "call `on_bad_input(Skip::All)` to skip bad records",
        ),
        (Skip::AtMost(1), "raise `on_bad_input`"),
    ] {
        let refused = run(skip).expect_err("the job fails").to_string();
        assert!(refused.contains(remedy), "{refused}");
    }
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
    assert!(
        counters.iter().all(|(name, _)| !name.contains("key")),
        "a hot key is no counter"
    );
    assert_eq!(hot(9_000).hot_keys(), []);
}

/// Writes the words of even length, and the others to a named output.
fn even_lengths() -> Job<(String, u64)> {
    let odd = NamedOutput::new("odd", Text);
    Job::text()
        .map(|word: &str, out: &mut Emit<String, u64>| out.emit(word, word.len() as u64))
        .named_output(&odd)
        .output(Records::default())
        .reduce(move |word, lengths, out| match lengths.sum() {
            odd_length if odd_length % 2 == 1 => out.to(&odd).emit(word, ()),
            length => out.emit(word, length),
        })
}

fn words_of_records() -> Job {
    Job::records::<String, u64>().map_only(|(word, _), out| out.emit(word, ()))
}

#[test]
fn next_job_reads_what_collect_returns_and_no_named_output() {
    let lines = Dataset::lines(["four", "two", "to", "three"]).expect("lines");
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept");
    let request = napreduce::job(even_lengths).inputs([&lines]).reduces(2);
    let temporary = request.clone().run(&Local::threads()).expect("it runs");
    let named = request
        .output(&kept)
        .as_records()
        .run(&Local::threads())
        .expect("it runs");
    assert!(kept.join("odd-r-00000").exists());

    let collected = temporary.fold(Vec::new(), |mut words, (word, _)| {
        words.push(word);
        words
    });
    let mut collected = collected.expect("it is read back");
    collected.sort();
    assert_eq!(collected, ["four", "to"]);
    let next = || napreduce::job(words_of_records);
    let by_glob = folder.path().join("k*");
    let requests = [
        next().inputs([&temporary]),
        next().inputs([&named]),
        next().inputs([&kept]),
        next().inputs([&by_glob]),
    ];
    for request in requests {
        let mut words = request
            .run(&Local::threads())
            .expect("it runs")
            .collect()
            .expect("lines");
        words.sort();
        assert_eq!(words, collected);
    }
    let odd = napreduce::job(|| Job::text().map_only(|line: &str, out| out.emit(line, ())));
    let odd = odd
        .inputs([kept.join("odd-*")])
        .run(&Local::threads())
        .expect("a glob names the files");
    assert_eq!(
        odd.report()
            .expect("a report")
            .counters
            .get("MAP_INPUT_RECORDS"),
        2
    );
}

/// The record of the failure of a job over these lines.
fn failed_record<T: 'static, J: Fn() -> Job<T> + Copy + 'static>(
    job: J,
    lines: &[&str],
) -> (String, String) {
    let lines = Dataset::lines(lines).expect("lines");
    let failed = napreduce::job(job)
        .inputs([&lines])
        .reduces(1)
        .run(&Local::threads());
    let Err(Error::Job(JobError::Failed {
        failure: Some(failure),
        ..
    })) = failed.map(drop)
    else {
        panic!("the job fails in a task");
    };
    let record = failure.record.expect("a record");
    (record.position, record.text.expect("its text"))
}

#[test]
fn failure_names_its_record_however_the_closure_fails() {
    type Out = Emit<String, ()>;
    let lines = ["good", "bad"];
    let in_map = ("line 2".to_owned(), "\"bad\"".to_owned());
    let panic = || {
        let map = |line: &str, out: &mut Out| {
            if line == "bad" {
                panic!("no")
            } else {
                out.emit(line, ())
            }
        };
        Job::text().map(map).count()
    };
    assert_eq!(failed_record(panic, &lines), in_map);
    let error = || {
        let map = |line: &str, _: &mut Out| if line == "bad" { Err("no") } else { Ok(()) };
        Job::text().map(map).count()
    };
    assert_eq!(failed_record(error, &lines), in_map);
    let retryable = || {
        let map = |line: &str, _: &mut Out| match line {
            "bad" => Err(TaskError::retryable("not yet")),
            _ => Ok(()),
        };
        Job::text().map(map).count()
    };
    assert_eq!(failed_record(retryable, &lines), in_map);
    let bad = || {
        let map = |line: &str, _: &mut Out| match line {
            "bad" => Err(BadRecord::new("no")),
            _ => Ok(()),
        };
        Job::text().map(map).count()
    };
    assert_eq!(failed_record(bad, &lines), in_map);
    let map_only = || {
        Job::text().map_only(|line: &str, out| {
            if line == "bad" {
                panic!("no")
            } else {
                out.emit(line, ())
            }
        })
    };
    assert_eq!(failed_record(map_only, &lines), in_map);

    let in_reduce = ("group 0".to_owned(), "\"bad\"".to_owned());
    let pairs = || Job::text().map(|line: &str, out: &mut Out| out.emit(line, ()));
    assert_eq!(
        failed_record(
            move || pairs().reduce(|_, _, _: &mut Output<Text>| panic!("no")),
            &lines
        ),
        in_reduce
    );
    assert_eq!(
        failed_record(
            move || pairs().reduce(|_, _, _: &mut Output<Text>| Err("no")),
            &lines
        ),
        in_reduce
    );
}

#[test]
fn refusal_of_a_request_names_methods_and_is_readable_in_debug_form() {
    let lines = Dataset::lines(["to be"]).expect("lines");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("old"), "").expect("written");
    let request = || napreduce::job(count).inputs([&lines]);
    let refusal = |error: Error| {
        assert_eq!(format!("{error:?}"), error.to_string());
        error.to_string()
    };
    let ran = request()
        .output(folder.path())
        .run(&Local::threads())
        .map(drop);
    let exists = refusal(ran.expect_err("the directory is not empty"));
    assert!(
        exists.ends_with("/ exists; call `overwrite()` or choose another"),
        "{exists}"
    );

    for (message, request) in [
        ("reduces 0: use 1 to 100000", request().reduces(0)),
        (
            "reduces 4294967295: use 1 to 100000",
            request().reduces(u32::MAX),
        ),
        ("task memory 0B: use 1MiB to 1TiB", request().task_memory(0)),
        (
            "task memory 18446744073709551615B: use 1MiB to 1TiB",
            request().task_memory(u64::MAX),
        ),
        (
            "`split_size` 0: must be positive (default 64MiB)",
            request().split_size(0),
        ),
        ("attempts max 0: use 1 to 100", request().attempts_max(0)),
        ("fan-in 1: use 2 to 1024", request().fan_in(1)),
        ("slowstart 1.1: use 0 to 1", request().slowstart(1.1)),
        ("slowstart NaN: use 0 to 1", request().slowstart(f64::NAN)),
        (
            "task timeout 18446744073709551615.999999999s: use 876000h (100 years) at most",
            request().task_timeout(Duration::MAX),
        ),
        (
            "deadline 18446744073709551615.999999999s: use 876000h (100 years) at most",
            request().deadline(Duration::MAX),
        ),
    ] {
        let refused = request
            .run(&Local::threads())
            .map(drop)
            .expect_err("it is out of range");
        assert_eq!(refusal(refused), message);
    }
    for slots in [0, 100_000] {
        let refused = request()
            .run(&Local::threads().slots(slots))
            .map(drop)
            .expect_err("out of range");
        assert_eq!(refusal(refused), format!("slots {slots}: use 1 to 4096"));
    }
}
