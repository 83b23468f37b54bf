//! Jobs of every shape that the builder allows, with well-behaved user code.

use napreduce::output::{NamedOutput, Text};
use napreduce::program::SideFile;
use napreduce::{Emit, Job, counter};

use crate::Choice;

pub fn words_of_bytes(_: &Choice) -> Job {
    Job::bytes()
        .map(|line: &[u8], out: &mut Emit<Vec<u8>, u64>| {
            for word in line
                .split(|byte| *byte == b' ')
                .filter(|word| !word.is_empty())
            {
                out.emit(word, 1);
            }
        })
        .combine(|count, more| *count += more)
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

pub fn words_without_combiner(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            line.split_ascii_whitespace()
                .for_each(|word| out.emit(word, 1));
        })
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// Numbers, one per line, with other lines written to the named output for errors.
pub fn sorted_out(_: &Choice) -> Job {
    let errors = NamedOutput::new("errors", Text);
    Job::text()
        .named_output(&errors)
        .map_only(move |line: &str, out| match line.parse::<u64>() {
            Ok(number) => out.emit(number, ()),
            Err(_) => out.to(&errors).emit(line, ()),
        })
}

/// Lines `user TAB time`; for each user the ordered times, joined by commas.
pub fn visits(_: &Choice) -> Job {
    Job::text()
        .map(
            |line: &str, out: &mut Emit<(String, u64), ()>| match line.split_once('\t') {
                Some((user, time)) => match time.parse() {
                    Ok(time) => out.emit((user, time), ()),
                    Err(_) => counter!("bad times").add(1),
                },
                None => counter!("bad lines").add(1),
            },
        )
        .group_by::<String>()
        .reduce(|user, visits, out| {
            let mut times = String::new();
            while let Some(((_, time), ())) = visits.next_entry() {
                times.push_str(&format!(
                    "{}{time}",
                    if times.is_empty() { "" } else { "," }
                ));
            }
            out.emit(user, times);
        })
}

/// Each line `number` times under one key: the group has `number` values per line.
pub fn one_key(choice: &Choice) -> Job {
    let copies = choice.number;
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, u64>| {
            let length = line.len() as u64;
            (0..copies).for_each(|_| out.emit("key", length));
        })
        .reduce(|key, lengths, out| {
            let (count, total) = lengths.fold((0u64, 0u64), |(count, total), length| {
                (count + 1, total + length)
            });
            out.emit(key, (count, total));
        })
}

/// Reads only the first value of each group, so that the framework skips the rest.
pub fn first_of_group(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, String>| {
            if let Some((key, value)) = line.split_once('\t') {
                out.emit(key, value);
            }
        })
        .reduce(|key, values, out| {
            if let Some(value) = values.next() {
                out.emit(key, value);
            }
        })
}

/// Lines as keys and lengths as values, for keys of any length.
pub fn lines_as_keys(_: &Choice) -> Job {
    Job::bytes()
        .map(|line: &[u8], out: &mut Emit<Vec<u8>, u64>| out.emit(line, line.len() as u64))
        .reduce(|line, lengths, out| {
            let digest = line.iter().fold(0u64, |sum, byte| {
                sum.wrapping_mul(31).wrapping_add(u64::from(*byte))
            });
            out.emit((digest, line.len()), lengths.count());
        })
}

/// A value of `number` bytes for each line.
pub fn big_values(choice: &Choice) -> Job {
    let length = choice.number as usize;
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, String>| {
            out.emit(line, &line.chars().cycle().take(length).collect::<String>());
        })
        .reduce(|key, values, out| {
            while let Some(value) = values.next() {
                out.emit(key, value);
            }
        })
}

/// Numbers, one per line, partitioned by their remainder.
pub fn by_remainder(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<u64, ()>| out.emit(line.parse().unwrap_or(0), ()))
        .partition_by(|number, partitions| (number % u64::from(partitions)) as u32)
        .reduce(|number, copies, out| out.emit(number, copies.count()))
}

/// Counts words slowly: `number` microseconds for each line and for each group.
pub fn slow(choice: &Choice) -> Job {
    let pause = std::time::Duration::from_micros(choice.number);
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, u64>| {
            std::thread::sleep(pause);
            line.split_ascii_whitespace()
                .for_each(|word| out.emit(word, 1));
        })
        .reduce(move |word, counts, out| {
            std::thread::sleep(pause);
            out.emit(word, counts.sum());
        })
}

/// Map-only: copies lines that contain the letter `e`, as slowly as `slow`.
pub fn slow_lines(choice: &Choice) -> Job {
    let pause = std::time::Duration::from_micros(choice.number);
    Job::text().map_only(move |line: &str, out| {
        std::thread::sleep(pause);
        if line.contains('e') {
            out.emit(line, ());
        }
    })
}

/// Lines that are also in the side file `known`; each attempt prints to its logs.
pub fn known_lines(_: &Choice) -> Job {
    let known = SideFile::new("known", |path| std::fs::read_to_string(path));
    Job::text().map_only(move |line: &str, out| {
        println!("looking for {line}");
        eprintln!("not an error: {line}");
        if known.get().lines().any(|name| name == line) {
            out.emit(line, ());
        }
    })
}
