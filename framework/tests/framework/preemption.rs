//! Byte identity of stateless jobs of every shape, preempted before every record, group and value.

use napreduce::output::FixedBytes;
use napreduce::records::Records;
use napreduce::testing::{JobTest, assert_preemption_safe};
use napreduce::{Emit, Job, counter, words};

const POEM: &str = "the owl and the pussycat went to sea\nin a beautiful pea green boat\n\n\
                    they took some honey and plenty of money\nwrapped up in a five pound note\n\
                    the owl looked up to the stars above";

fn lines(count: usize) -> String {
    (0..count)
        .map(|number| format!("line {} of {}\n", number * 7919 % 97, number % 5))
        .collect()
}

fn wordcount() -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            words(line).for_each(|word| out.emit(word, 1))
        })
        .combine(|count, more| *count += more)
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// Writes every value in order.
fn lines_by_word() -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, String>| {
            for word in words(line) {
                counter!("words").add(1);
                out.emit(word, line);
            }
        })
        .reduce(|word, lines, out| {
            counter!("groups").add(1);
            while let Some(line) = lines.next() {
                out.emit(word, line);
            }
        })
}

#[test]
fn job_with_combiner_is_preemption_safe() {
    JobTest::new(wordcount)
        .input(POEM)
        .split_size(60)
        .reduces(2)
        .assert_preemption_safe();
}

/// The reduce receives only the combiner's result, and the order of values matters here.
#[test]
fn fold_follows_value_order() {
    let chains = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<u64, String>| {
                words(line).for_each(|word| out.emit(word.len() as u64, word));
            })
            .combine(|chain, more| {
                chain.push('-');
                chain.push_str(&more);
            })
            .reduce_total(|length, chain, out| out.emit(length, chain))
    };
    let test = JobTest::new(chains)
        .input("to be or not\nto go\nand on\n")
        .split_size(12);
    assert_eq!(test.run().text(), "2\tto-be-or-to-go-on\n3\tnot-and\n");
    test.assert_preemption_safe();
}

#[test]
fn job_with_user_counters_is_preemption_safe() {
    JobTest::new(lines_by_word)
        .input(POEM)
        .input("one more\n")
        .split_size(90)
        .reduces(2)
        .assert_preemption_safe();
}

#[test]
fn empty_job_is_preemption_safe() {
    assert_preemption_safe(wordcount, "");
    JobTest::new(wordcount)
        .input("")
        .input("\n")
        .reduces(3)
        .assert_preemption_safe();
}

/// Users in order, each with the ordered times.
fn visits() -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<(String, u64), ()>| {
            let mut fields = words(line);
            if let (Some(user), Some(time)) = (fields.next(), fields.next()) {
                out.emit((user, time.len() as u64), ());
            }
        })
        .group_by::<String>()
        .reduce(|user, visits, out| {
            while let Some(((_, time), ())) = visits.next_entry() {
                out.emit(user, time);
            }
        })
}

#[test]
fn secondary_sort_is_preemption_safe() {
    JobTest::new(visits)
        .input(POEM)
        .input(POEM)
        .split_size(70)
        .reduces(2)
        .assert_preemption_safe();
}

fn one_group() -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<(), String>| {
            words(line).for_each(|word| out.emit((), word))
        })
        .reduce(|(), all, out| {
            while let Some(word) = all.next() {
                out.emit(word, ());
            }
        })
}

#[test]
fn single_group_is_saved_at_its_end() {
    JobTest::new(one_group)
        .input(POEM)
        .split_size(50)
        .assert_preemption_safe();
}

/// Reads one value of each group; the framework skips the rest.
#[test]
fn unread_values_are_preemption_safe() {
    let first = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<u64, String>| out.emit(line.len() as u64 % 3, line))
            .reduce(|length, lines, out| {
                if let Some(line) = lines.next() {
                    out.emit(length, line);
                }
            })
    };
    JobTest::new(first)
        .input(POEM)
        .input(lines(5))
        .split_size(80)
        .assert_preemption_safe();
}

fn shouting() -> Job {
    Job::text().map_only(|line: &str, out| {
        counter!("shouted").add(1);
        if !line.is_empty() {
            out.emit(line.to_uppercase(), line.len());
        }
    })
}

#[test]
fn map_only_job_is_preemption_safe() {
    JobTest::new(shouting)
        .input(POEM)
        .input(lines(4))
        .split_size(50)
        .assert_preemption_safe();
}

#[test]
fn spilling_map_is_preemption_safe() {
    // Less than half of the megabyte is available to the sort.
    let wide = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<String, Vec<u8>>| {
                for word in words(line) {
                    out.emit(word, &word.as_bytes().repeat(20_000));
                }
            })
            .reduce(|word, values, out| {
                while let Some(value) = values.next() {
                    out.emit(word, value.len());
                }
            })
    };
    let test = JobTest::new(wide).input(POEM).task_memory(1 << 20);
    let counters = test.run().counters;
    assert!(
        counters.get("SPILLED_RECORDS") > counters.get("MAP_OUTPUT_RECORDS"),
        "{counters:?}"
    );
    test.assert_preemption_safe();
}

#[test]
fn merging_reduce_is_preemption_safe() {
    let test = JobTest::new(lines_by_word)
        .input(POEM)
        .input(lines(6))
        .split_size(50)
        .fan_in(2);
    let counters = test.run().counters;
    assert!(counters.get("SPILLED_RECORDS") > counters.get("MAP_OUTPUT_RECORDS"));
    assert!(counters.get("MERGE_PASSES") > 1, "{counters:?}");
    let at_once = JobTest::new(lines_by_word)
        .input(POEM)
        .input(lines(6))
        .split_size(50)
        .run();
    assert_eq!(at_once.counters.get("MERGE_PASSES"), 0);
    test.assert_preemption_safe();
}

#[test]
fn combining_merges_of_compressed_blocks_are_preemption_safe() {
    let test = JobTest::new(wordcount)
        .input(POEM)
        .split_size(40)
        .reduces(2);
    test.fan_in(2)
        .compress_map_output()
        .assert_preemption_safe();
}

#[test]
fn compressed_input_is_preemption_safe() {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(POEM.as_bytes()).expect("memory");
    let bytes = gzip.finish().expect("memory");
    JobTest::new(wordcount)
        .input(&bytes)
        .input_extension("gz")
        .assert_preemption_safe();
    JobTest::new(shouting)
        .input(&bytes)
        .input_extension("gz")
        .assert_preemption_safe();
}

#[test]
fn fixed_length_records_are_preemption_safe() {
    let rows = || {
        Job::fixed_records(10)
            .map(|row: &[u8], out: &mut Emit<[u8; 4], Vec<u8>>| {
                let key = [row[3], row[2], row[1], row[0]];
                out.emit(key, &row[4..]);
            })
            .output(FixedBytes { length: 10 })
            .reduce(|key, rows, out| {
                while let Some(rest) = rows.next() {
                    out.write_parts(key.as_slice(), rest);
                }
            })
    };
    let input: Vec<u8> = (0..160u32)
        .map(|number| b'a' + (number * number % 23) as u8)
        .collect();
    JobTest::new(rows)
        .input(&input)
        .split_size(60)
        .assert_preemption_safe();
}

#[test]
#[ignore = "long: .ci/run runs it"]
fn whole_files_and_typed_records_are_preemption_safe() {
    let first = || {
        Job::whole_files()
            .map(
                |file: napreduce::input::WholeFile<'_>, out: &mut Emit<u64, String>| {
                    let text = String::from_utf8_lossy(file.bytes);
                    words(&text).for_each(|word| out.emit(word.len() as u64, word));
                },
            )
            .output(Records::<u64, String>::default())
            .reduce(|length, words, out| {
                while let Some(word) = words.next() {
                    out.emit(length, word);
                }
            })
    };
    let test = JobTest::new(first).input(POEM).input("").input(lines(3));
    test.assert_preemption_safe();
    let records = test.run().parts.concat();
    let second = || {
        Job::records::<u64, String>()
            .map(|(length, word), out: &mut Emit<String, u64>| out.emit(word, length))
            .reduce(|word, lengths, out| out.emit(word, lengths.sum()))
    };
    JobTest::new(second)
        .input(&records)
        .assert_preemption_safe();
    let third = || {
        let output = Records::<u64, String>::default();
        Job::records::<u64, String>().map_only_to(output, |(length, word), out| {
            if length > 3 {
                out.emit(length, word)
            }
        })
    };
    JobTest::new(third).input(&records).assert_preemption_safe();
}

#[test]
fn total_order_is_preemption_safe() {
    let sorted = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<String, ()>| out.emit(line, ()))
            .total_order()
            .reduce(|line, copies, out| {
                while copies.next().is_some() {
                    out.emit(line, ());
                }
            })
    };
    JobTest::new(sorted)
        .input(lines(12))
        .split_size(60)
        .reduces(3)
        .assert_preemption_safe();
}

#[test]
fn anything_anywhere() {
    let seed = std::env::var("NAPREDUCE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    println!("NAPREDUCE_SEED={seed}");
    JobTest::new(wordcount)
        .input(POEM)
        .split_size(60)
        .reduces(2)
        .assert_safe_at_random(seed, 40);
    JobTest::new(lines_by_word)
        .input(POEM)
        .split_size(40)
        .fan_in(2)
        .assert_safe_at_random(seed, 40);
    JobTest::new(shouting)
        .input(POEM)
        .assert_safe_at_random(seed, 40);
}
