//! Ready folds equal naive ones, whatever the splits, spills, merges and preemptions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use napreduce::builder::{MapStage, Sum};
use napreduce::codec::List;
use napreduce::records::Records;
use napreduce::run::Local;
use napreduce::testing::{JobTest, assert_preemption_safe};
use napreduce::{Dataset, Emit, Job, Key, Value};
use proptest::collection::vec;
use proptest::prelude::*;

type Pairs = Vec<(String, i64)>;

/// Lines of KEY NUMBER.
fn pairs() -> MapStage<String, i64> {
    Job::text().map(|line: &str, out: &mut Emit<String, i64>| {
        let (key, number) = line.split_once(' ').expect("two fields");
        out.emit(key, number.parse().expect("a number"));
    })
}

/// The same pairs with the number as a float.
fn floats() -> MapStage<String, f64> {
    Job::text().map(|line: &str, out: &mut Emit<String, f64>| {
        let (key, number) = line.split_once(' ').expect("two fields");
        out.emit(key, number.parse::<f64>().expect("a number") / 10.0);
    })
}

fn lines(pairs: &[(String, i64)]) -> String {
    pairs
        .iter()
        .map(|(key, number)| format!("{key} {number}\n"))
        .collect()
}

/// The result of each group in memory.
fn naive<R: Display>(pairs: &[(String, i64)], fold: impl Fn(&[i64]) -> R) -> String {
    let mut groups: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for (key, number) in pairs {
        groups.entry(key).or_default().push(*number);
    }
    groups
        .iter()
        .map(|(key, numbers)| format!("{key}\t{}\n", fold(numbers)))
        .collect()
}

fn fields(numbers: impl IntoIterator<Item = i64>) -> String {
    numbers
        .into_iter()
        .map(|number| number.to_string())
        .collect::<Vec<_>>()
        .join("\t")
}

fn greatest(numbers: &[i64], n: usize) -> String {
    let mut numbers = numbers.to_vec();
    numbers.sort_by_key(|number| Reverse(*number));
    fields(numbers.into_iter().take(n))
}

fn some_pairs() -> impl Strategy<Value = Pairs> {
    vec(("[a-e]", -20..20i64), 0..60)
}

/// Runs a job in one split, in many, and with several spills and merges.
fn check<T>(
    job: fn() -> Job<T>,
    pairs: &Pairs,
    split_size: u64,
    expected: &str,
) -> Result<(), TestCaseError> {
    let test = || JobTest::new(job).input(lines(pairs));
    prop_assert_eq!(test().run().text(), expected);
    prop_assert_eq!(test().split_size(split_size).run().text(), expected);
    let merged = test()
        .split_size(split_size)
        .task_memory(1 << 20)
        .fan_in(2)
        .run();
    prop_assert_eq!(merged.text(), expected);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn folds_equal_naive_folds(pairs_ in some_pairs(), split_size in 1..100u64) {
        let pairs_ = &pairs_;
        check(|| pairs().count(), pairs_, split_size, &naive(pairs_, |numbers| numbers.len()))?;
        check(|| pairs().sum(), pairs_, split_size, &naive(pairs_, |numbers| numbers.iter().sum::<i64>()))?;
        check(|| pairs().min(), pairs_, split_size, &naive(pairs_, |numbers| numbers.iter().min().copied().unwrap_or(0)))?;
        check(|| pairs().max(), pairs_, split_size, &naive(pairs_, |numbers| numbers.iter().max().copied().unwrap_or(0)))?;
        let mean = |numbers: &[i64]| format!("{:?}", numbers.iter().sum::<i64>() as f64 / numbers.len() as f64);
        check(|| pairs().mean(), pairs_, split_size, &naive(pairs_, mean))?;
        check(|| pairs().top(3), pairs_, split_size, &naive(pairs_, |numbers| greatest(numbers, 3)))?;
        check(|| pairs().top(0), pairs_, split_size, &naive(pairs_, |numbers| greatest(numbers, 0)))?;
        check(|| pairs().collect(), pairs_, split_size, &naive(pairs_, |numbers| fields(numbers.to_vec())))?;
        check(|| pairs().first(), pairs_, split_size, &naive(pairs_, |numbers| numbers[0]))?;
        let distinct = |numbers: &[i64]| numbers.iter().collect::<BTreeSet<_>>().len();
        check(|| pairs().count_distinct(), pairs_, split_size, &naive(pairs_, distinct))?;
        let keys = naive(pairs_, |_| "").replace('\t', "");
        check(|| pairs().distinct(), pairs_, split_size, &keys)?;
        let product = |numbers: &[i64]| numbers.iter().fold(1, |product, number| product ^ number);
        check(|| pairs().reduce_by_key(|bits, more| *bits ^= more), pairs_, split_size,
            &naive(pairs_, |numbers| product(numbers) ^ 1))?;
    }

    #[test]
    fn float_folds_do_not_depend_on_splits(pairs_ in some_pairs(), split_size in 1..100u64) {
        let pairs_ = &pairs_;
        let sum = |numbers: &[i64]| numbers.iter().fold(0.0, |sum, number| sum + *number as f64 / 10.0);
        check(|| floats().sum(), pairs_, split_size, &naive(pairs_, |numbers| format!("{:?}", sum(numbers))))?;
        let mean = |numbers: &[i64]| format!("{:?}", sum(numbers) / numbers.len() as f64);
        check(|| floats().mean(), pairs_, split_size, &naive(pairs_, mean))?;
    }

    #[test]
    fn lists_keep_order_and_length(lists in vec(vec("[a-c\0]{0,2}", 0..4), 2..6)) {
        let encoded = |list: &Vec<String>| {
            let mut bytes = Vec::new();
            List::<String>::encode_owned(list, false, &mut bytes);
            bytes
        };
        for one in &lists {
            prop_assert_eq!(&List::<String>::decode_owned(&encoded(one)).expect("a list"), one);
            prop_assert_eq!(List::<String>::skip(&encoded(one), false), Ok(encoded(one).len()));
            for other in &lists {
                prop_assert_eq!(encoded(one).cmp(&encoded(other)), one.cmp(other));
            }
        }
    }
}

const INPUT: &str = "b 2\na 1\nb 2\nb 7\nc 3\na 5\n";

#[test]
#[ignore = "long: .ci/run runs it"]
fn folds_are_preemption_safe() {
    assert_preemption_safe(|| pairs().count(), INPUT);
    assert_preemption_safe(|| pairs().distinct(), INPUT);
    assert_preemption_safe(|| pairs().sum(), INPUT);
    assert_preemption_safe(|| floats().sum(), INPUT);
    assert_preemption_safe(|| pairs().mean(), INPUT);
    assert_preemption_safe(|| floats().mean(), INPUT);
    assert_preemption_safe(|| pairs().min(), INPUT);
    assert_preemption_safe(|| pairs().max(), INPUT);
    assert_preemption_safe(|| pairs().top(2), INPUT);
    assert_preemption_safe(|| pairs().first(), INPUT);
    assert_preemption_safe(|| pairs().collect(), INPUT);
    assert_preemption_safe(|| pairs().count_distinct(), INPUT);
    assert_preemption_safe(
        || pairs().map_groups(|key, numbers| (key.to_owned(), numbers.sum())),
        INPUT,
    );
}

#[test]
fn records_for_next_job_are_preemption_safe() {
    JobTest::new(|| pairs().collect())
        .input(INPUT)
        .for_next_job()
        .assert_preemption_safe();
}

#[test]
fn pairs_for_next_job_equal_typed_records() {
    let by_records = || {
        pairs()
            .combine(|sum, more| *sum += more)
            .output(Records::<String, i64>::default())
            .reduce_total(|key, sum, out| out.emit(key, sum))
    };
    let expected = JobTest::new(by_records).input(INPUT).run();
    let found = JobTest::new(|| pairs().sum())
        .input(INPUT)
        .for_next_job()
        .run();
    // Unfinished sums are wider.
    assert_eq!(found.parts, expected.parts);
    let read = || Job::records::<String, i64>().map_only(|(key, sum), out| out.emit(key, sum));
    assert_eq!(
        JobTest::new(read).input(&found.parts[0]).run().text(),
        "a\t6\nb\t11\nc\t3\n"
    );
}

#[test]
#[ignore = "long: .ci/run runs it"]
fn folds_write_chosen_records() {
    type Made<T> = fn() -> Job<T>;
    fn check<T, U>(to_records: Made<T>, plain: Made<U>) {
        let expected = JobTest::new(plain).input(INPUT).for_next_job().run();
        let test = JobTest::new(to_records).input(INPUT);
        assert_eq!(test.run(), expected);
        test.assert_preemption_safe();
    }
    check(
        || pairs().output(Records::default()).count(),
        || pairs().count(),
    );
    check(
        || pairs().output(Records::default()).distinct(),
        || pairs().distinct(),
    );
    check(
        || pairs().output(Records::default()).sum(),
        || pairs().sum(),
    );
    check(
        || floats().output(Records::default()).sum(),
        || floats().sum(),
    );
    check(
        || pairs().output(Records::default()).mean(),
        || pairs().mean(),
    );
    check(
        || pairs().output(Records::default()).max(),
        || pairs().max(),
    );
    check(
        || pairs().output(Records::default()).top(2),
        || pairs().top(2),
    );
    check(
        || pairs().output(Records::default()).first(),
        || pairs().first(),
    );
    check(
        || pairs().output(Records::default()).collect(),
        || pairs().collect(),
    );
    check(
        || pairs().output(Records::default()).count_distinct(),
        || pairs().count_distinct(),
    );
    let words = || {
        Job::text()
            .output(Records::default())
            .flat_map(napreduce::words)
            .count()
    };
    let expected = JobTest::new(|| Job::text().flat_map(napreduce::words).count())
        .input(INPUT)
        .for_next_job()
        .run();
    assert_eq!(JobTest::new(words).input(INPUT).run(), expected);
}

#[test]
fn text_of_fold_equals_text_of_reduce() {
    let by_reduce = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<(Option<String>, bool), f64>| {
                out.emit((line.strip_prefix('b'), line.len() > 3), line.len() as f64);
            })
            .reduce(|key, lengths, out| out.emit(key, lengths.sum()))
    };
    let by_fold = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<(Option<String>, bool), f64>| {
                out.emit((line.strip_prefix('b'), line.len() > 3), line.len() as f64);
            })
            .sum()
    };
    let input = "to\nbe\nbring\n\nbe\n";
    assert_eq!(
        JobTest::new(by_fold).input(input).run(),
        JobTest::new(by_reduce).input(input).run()
    );
}

#[test]
fn groups_by_prefix_are_folded() {
    let stage = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<(String, i64), i64>| {
                let (key, number) = line.split_once(' ').expect("two fields");
                let number: i64 = number.parse().expect("a number");
                out.emit((key, -number), number);
            })
            .group_by::<String>()
    };
    let text = |output: napreduce::testing::JobOutput| output.text();
    assert_eq!(
        text(JobTest::new(|| stage().count()).input(INPUT).run()),
        "a\t2\nb\t3\nc\t1\n"
    );
    assert_eq!(
        text(JobTest::new(|| stage().sum()).input(INPUT).run()),
        "a\t6\nb\t11\nc\t3\n"
    );
    assert_eq!(
        text(JobTest::new(|| stage().collect()).input(INPUT).run()),
        "a\t5\t1\nb\t7\t2\t2\nc\t3\n"
    );
    assert_eq!(
        text(JobTest::new(|| stage().first()).input(INPUT).run()),
        "a\t5\nb\t7\nc\t3\n"
    );
}

#[test]
fn partition_and_total_order_apply_to_converted_keys() {
    let input = "d 1\na 1\nd 1\nb 2\nc 3\nd 2\n";
    let by_letter = || {
        pairs()
            .partition_by(|key, partitions| u32::from(key > "b") % partitions)
            .count_distinct()
    };
    let output = JobTest::new(by_letter).input(input).reduces(2).run();
    assert_eq!(
        output.parts,
        [b"a\t1\nb\t1\n".to_vec(), b"c\t1\nd\t2\n".to_vec()]
    );
    for job in [
        (|| pairs().total_order().count_distinct()) as fn() -> Job<(String, u64)>,
        || pairs().total_order().count(),
    ] {
        let output = JobTest::new(job).input(input).reduces(2).run();
        assert!(
            output.parts.iter().all(|part| !part.is_empty()),
            "{:?}",
            output.parts
        );
        let sorted: Vec<_> = output
            .text()
            .lines()
            .map(|line| line[..1].to_owned())
            .collect();
        assert_eq!(sorted, ["a", "b", "c", "d"]);
    }
}

#[test]
fn nan_is_greatest_float() {
    let values =
        || Job::text().flat_map(|line: &str| [("x", line.parse::<f64>().expect("a float"))]);
    let input = "1.5\nNaN\n-2\n";
    assert_eq!(
        JobTest::new(|| values().max()).input(input).run().text(),
        "x\tNaN\n"
    );
    assert_eq!(
        JobTest::new(|| values().min()).input(input).run().text(),
        "x\t-2.0\n"
    );
    assert_eq!(
        JobTest::new(|| values().top(2)).input(input).run().text(),
        "x\tNaN\t1.5\n"
    );
}

#[test]
fn overflow_of_sum_fails_job() {
    let sums = || {
        Job::text()
            .flat_map(|line: &str| [("x", line.parse::<u8>().expect("a number"))])
            .sum()
    };
    let message = std::panic::catch_unwind(|| JobTest::new(sums).input("200\n100\n").run())
        .expect_err("300 is no u8");
    let message = message.downcast_ref::<String>().expect("a message");
    assert!(
        message.contains("the sum exceeds the range of u8"),
        "{message}"
    );
    let means = || {
        Job::text()
            .flat_map(|line: &str| [("x", line.parse::<u8>().expect("a number"))])
            .mean()
    };
    assert_eq!(
        JobTest::new(means).input("200\n100\n").run().text(),
        "x\t150.0\n"
    );
}

#[test]
fn overflow_of_sum_names_key_in_reduce_and_input_in_map() {
    let sums = || {
        Job::text()
            .flat_map(|line: &str| [("x", line.parse::<u64>().expect("a number"))])
            .sum()
    };
    let message = |lines: &[&[&str]]| {
        let inputs: Vec<_> = lines
            .iter()
            .map(|lines| Dataset::lines(*lines).expect("lines"))
            .collect();
        let failed = napreduce::job(sums)
            .inputs(&inputs)
            .run(&Local::threads())
            .expect_err("the sum is too large");
        failed.to_string()
    };
    let in_reduce = message(&[&["18446744073709551615"], &["1"]]);
    assert!(
        in_reduce.contains("the sum exceeds the range of u64"),
        "{in_reduce}"
    );
    assert!(in_reduce.contains("key \"x\""), "{in_reduce}");
    let in_map = message(&[&["18446744073709551615", "1"]]);
    assert!(
        in_map.contains("the sum exceeds the range of u64"),
        "{in_map}"
    );
    assert!(in_map.contains("bytes 0..23"), "{in_map}");
}

#[test]
fn spilled_folds_equal_naive_folds() {
    let pairs_: Pairs = (0..60_000i64)
        .map(|number| (format!("key-{:05}", number * 7919 % 20_011), number % 13))
        .collect();
    let run = |job: fn() -> Job<(String, u64)>| {
        let output = JobTest::new(job)
            .input(lines(&pairs_))
            .task_memory(1 << 20)
            .reduces(1)
            .run();
        assert!(
            output.counters.get("SPILLED_RECORDS") > output.counters.get("REDUCE_INPUT_RECORDS")
        );
        output.text()
    };
    assert_eq!(
        run(|| pairs().count()),
        naive(&pairs_, |numbers| numbers.len())
    );
    let distinct = |numbers: &[i64]| numbers.iter().collect::<BTreeSet<_>>().len();
    assert_eq!(run(|| pairs().count_distinct()), naive(&pairs_, distinct));
    let top = JobTest::new(|| pairs().top(2))
        .input(lines(&pairs_))
        .task_memory(1 << 20)
        .run();
    assert_eq!(top.text(), naive(&pairs_, |numbers| greatest(numbers, 2)));
}

/// Numbers of an input, all of one group.
fn numbers<V>() -> MapStage<String, V>
where
    V: Value<Owned = V> + std::str::FromStr<Err: std::fmt::Debug> + Clone,
    for<'a> V: Value<Ref<'a> = V>,
{
    Job::text()
        .map(|line: &str, out: &mut Emit<String, V>| out.emit("x", line.parse().expect("a number")))
}

/// The output of a job over one file for each text, or the message of its failure.
fn outcome<T>(job: fn() -> Job<T>, texts: &[&[&str]]) -> Result<String, String> {
    let mut test = JobTest::new(job).combine_files(false);
    for lines in texts {
        test = test.input(lines.join("\n"));
    }
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test.run().text()));
    ran.map_err(|panic| panic.downcast_ref::<String>().expect("a message").clone())
}

/// Every way in which the lines are divided among two files, in both orders.
fn divided<'a>(lines: &[&'a str]) -> Vec<[Vec<&'a str>; 2]> {
    let mut divisions = Vec::new();
    for choice in 0..1u32 << lines.len() {
        let mut files = [Vec::new(), Vec::new()];
        for (number, line) in lines.iter().enumerate() {
            files[(choice >> number & 1) as usize].push(*line);
        }
        divisions.push(files);
    }
    divisions
}

#[track_caller]
fn assert_sum<T>(job: fn() -> Job<T>, lines: &[&str], expected: Result<&str, &str>) {
    for files in divided(lines) {
        let files: Vec<&[&str]> = files
            .iter()
            .map(Vec::as_slice)
            .filter(|file| !file.is_empty())
            .collect();
        match (outcome(job, &files), expected) {
            (Ok(text), Ok(sum)) => assert_eq!(text, format!("x\t{sum}\n"), "{files:?}"),
            (Err(message), Err(range)) => {
                assert!(
                    message.contains(&format!("the sum exceeds the range of {range}")),
                    "{message}"
                )
            }
            (found, _) => panic!("{files:?}: {found:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn sum_that_overflows_midway_is_exact_however_input_is_divided() {
    assert_sum(
        || numbers::<i64>().sum(),
        &["9223372036854775807", "1", "-1"],
        Ok("9223372036854775807"),
    );
    assert_sum(|| numbers::<i8>().sum(), &["-128", "-1", "1"], Ok("-128"));
    let most = i128::MAX.to_string();
    let least = i128::MIN.to_string();
    assert_sum(
        || numbers::<i128>().sum(),
        &[&most, &most, &least, &least, "5"],
        Ok("3"),
    );
    assert_sum(
        || numbers::<i64>().reduce(|key, numbers, out| out.emit(key, numbers.sum())),
        &["9223372036854775807", "1", "-1"],
        Ok("9223372036854775807"),
    );
}

#[test]
fn sum_outside_its_range_fails_however_input_is_divided() {
    assert_sum(
        || numbers::<i64>().sum(),
        &["9223372036854775807", "1"],
        Err("i64"),
    );
    assert_sum(
        || numbers::<i64>().sum(),
        &["-9223372036854775808", "-1"],
        Err("i64"),
    );
    assert_sum(|| numbers::<u8>().sum(), &["255", "1"], Err("u8"));
    assert_sum(
        || numbers::<u64>().sum(),
        &["18446744073709551615", "1"],
        Err("u64"),
    );
    let most = u128::MAX.to_string();
    assert_sum(|| numbers::<u128>().sum(), &[&most, "1"], Err("u128"));
    let by_reduce = || numbers::<u8>().reduce(|key, numbers, out| out.emit(key, numbers.sum()));
    assert_sum(by_reduce, &["255", "1"], Err("u8"));
    let combined = || numbers::<u8>().reduce_by_key(Sum::add);
    assert_sum(combined, &["255", "1"], Err("u8"));
}

#[test]
fn integers_beside_floats_are_added_exactly() {
    let sums = || {
        Job::text()
            .flat_map(|line: &str| [("x", (0.5f64, line.parse::<i64>().expect("a number")))])
            .sum()
    };
    let output = JobTest::new(sums)
        .input("9223372036854775807\n1\n-1\n")
        .run();
    assert_eq!(output.text(), "x\t1.5\t9223372036854775807\n");
}

#[test]
fn mean_of_widest_integers_is_a_number() {
    let most = u128::MAX;
    let means = || numbers::<u128>().mean();
    let text = JobTest::new(means)
        .input(format!("{most}\n{most}\n"))
        .run()
        .text();
    assert_eq!(text, format!("x\t{:?}\n", most as f64));
}

#[test]
fn count_after_sum_is_number_of_summands() {
    let means = || {
        numbers::<u64>().reduce(|key, numbers, out| {
            out.emit(key, numbers.sum() as f64 / numbers.count() as f64)
        })
    };
    assert_eq!(
        JobTest::new(means).input("1\n2\n6\n").run().text(),
        "x\t3.0\n"
    );
    let repeated = || {
        numbers::<u64>().reduce(|key, numbers, out| {
            numbers.sum();
            out.emit((key, numbers.count()), numbers.count());
        })
    };
    assert_eq!(
        JobTest::new(repeated).input("1\n2\n6\n").run().text(),
        "x\t3\t3\n"
    );
}

#[test]
fn second_pass_over_values_fails_task() {
    let second_passes: [fn() -> Job; 6] = [
        || {
            numbers::<u64>()
                .reduce(|key, numbers, out| out.emit(key, (numbers.count(), numbers.sum())))
        },
        || {
            numbers::<u64>()
                .reduce(|key, numbers, out| out.emit(key, (numbers.sum(), numbers.sum())))
        },
        || {
            numbers::<u64>().reduce(|key, numbers, out| {
                out.emit(key, (numbers.owned().max(), numbers.owned().min()))
            })
        },
        || {
            numbers::<u64>().reduce(|key, numbers, out| {
                let kept: Vec<u64> = numbers.owned().collect();
                out.emit((key, kept.len()), numbers.sum());
            })
        },
        || {
            numbers::<u64>().reduce(|key, numbers, out| {
                let mean = numbers.fold(0, |sum, number| sum + number);
                for number in numbers {
                    out.emit(key, number - mean);
                }
            })
        },
        || {
            numbers::<u64>().reduce(|key, numbers, out| {
                let sum = numbers.sum();
                while let Some(number) = numbers.next() {
                    out.emit(key, number as f64 / sum as f64);
                }
            })
        },
    ];
    for job in second_passes {
        let message = outcome(job, &[&["1", "2"]]).expect_err("values are read once");
        assert!(
            message.contains("the values of a group are read once"),
            "{message}"
        );
    }
}

#[test]
fn rest_of_values_is_read_after_the_first_ones() {
    let rest = || {
        numbers::<u64>().reduce(|key, numbers, out| {
            let first: Vec<u64> = numbers.owned().take(2).collect();
            out.emit((key, first.len()), (numbers.sum(), numbers.count()));
        })
    };
    assert_eq!(
        JobTest::new(rest).input("1\n2\n6\n7\n").run().text(),
        "x\t2\t13\t2\n"
    );
    assert_eq!(JobTest::new(rest).input("1\n").run().text(), "x\t1\t0\t0\n");
    let mapped = || {
        numbers::<u64>().reduce(|key, numbers, out| {
            let first = numbers.next().expect("a group has a value");
            let doubled: Vec<u64> = numbers.owned().map(|number| number * 2).collect();
            out.emit((key, first), doubled);
        })
    };
    assert_eq!(
        JobTest::new(mapped).input("1\n2\n6\n").run().text(),
        "x\t1\t4\t12\n"
    );
}

#[test]
fn negative_zero_stays_as_value_and_is_zero_as_key() {
    let zeros = || {
        Job::text().map(|line: &str, out: &mut Emit<f64, (f64, Option<f64>)>| {
            let number: f64 = line.parse().expect("a number");
            out.emit(number, (number, Some(number)));
        })
    };
    let listed = move || {
        zeros().reduce(|key, values, out| out.emit(key, values.owned().collect::<Vec<_>>()))
    };
    let lines = JobTest::new(listed).input("-0.0\n0.0\n1\n").run();
    assert_eq!(lines.text(), "0.0\t-0.0\t-0.0\t0.0\t0.0\n1.0\t1.0\t1.0\n");
    let greatest = move || zeros().max();
    assert_eq!(
        JobTest::new(greatest).input("-0.0\n1\n-0.0\n").run().text(),
        "0.0\t-0.0\t-0.0\n1.0\t1.0\t1.0\n"
    );
}

#[test]
fn zeros_of_both_signs_are_one_key_of_a_combiner() {
    let counts = || {
        let zeros = Job::text().map(|line: &str, out: &mut Emit<(String, Option<f64>), u64>| {
            out.emit(("x", Some(line.parse().expect("a number"))), 1);
        });
        zeros.reduce_by_key(Sum::add)
    };
    let counts = JobTest::new(counts).input("-0.0\n0.0\n-0.0\n").run();
    assert_eq!(counts.text(), "x\t0.0\t3\n");
}

#[test]
fn zeros_of_both_signs_are_one_derived_key() {
    #[derive(Key, Clone, Copy)]
    struct Reading {
        degrees: f64,
        place: u8,
    }
    let readings = || {
        let readings = Job::text().map(|line: &str, out: &mut Emit<Reading, f64>| {
            let degrees: f64 = line.parse().expect("a number");
            out.emit(Reading { degrees, place: 1 }, degrees);
        });
        readings.reduce(|reading, values, out| {
            let key = (reading.degrees, reading.place);
            out.emit(key, values.owned().collect::<Vec<_>>())
        })
    };
    let readings = JobTest::new(readings).input("-0.0\n0.0\n").run();
    assert_eq!(readings.text(), "0.0\t1\t-0.0\t0.0\n");
}

#[test]
fn zeros_of_both_signs_are_one_distinct_value() {
    let distinct = || {
        let numbers = Job::text().map(|line: &str, out: &mut Emit<String, (u8, f64)>| {
            out.emit("x", (1, line.parse().expect("a number")));
        });
        numbers.count_distinct()
    };
    let distinct = JobTest::new(distinct).input("-0.0\n0.0\n2\n").run();
    assert_eq!(distinct.text(), "x\t2\n");
}

#[test]
fn partition_by_before_group_by_is_refused() {
    let stage = || {
        Job::text().map(|line: &str, out: &mut Emit<(String, u64), ()>| {
            out.emit((line, line.len() as u64), ())
        })
    };
    let before = move || {
        let divided = stage().partition_by(|(_, length), partitions| length as u32 % partitions);
        divided.group_by::<String>().count()
    };
    let lines = Dataset::lines(["to", "be"]).expect("lines");
    let refused = napreduce::job(before)
        .inputs([&lines])
        .run(&Local::threads())
        .expect_err("it divides groups");
    assert!(
        refused.to_string().contains("call it after `group_by`"),
        "{refused}"
    );
}
