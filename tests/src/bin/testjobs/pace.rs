//! Slow jobs: a pause per record, group or value, a gate in the middle of the input, or an endless task.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use napreduce::{Emit, Job, progress};

use crate::Choice;

fn pause(choice: &Choice) -> impl Fn() + Clone + Send + Sync + 'static {
    let pause = Duration::from_millis(choice.number);
    move || std::thread::sleep(pause)
}

/// Each record takes `number` milliseconds.
pub fn slow_records(choice: &Choice) -> Job {
    let pause = pause(choice);
    Job::text().map_only(move |line: &str, out| {
        pause();
        out.emit(line, ());
    })
}

/// Each group takes `number` milliseconds.
pub fn slow_groups(choice: &Choice) -> Job {
    let pause = pause(choice);
    Job::text()
        .map(|line: &str, out: &mut Emit<String, ()>| out.emit(line, ()))
        .reduce(move |line, _, out| {
            pause();
            out.emit(line, ());
        })
}

/// All lines are values of one group, each of which takes `number` milliseconds.
pub fn slow_values(choice: &Choice) -> Job {
    let pause = pause(choice);
    Job::text()
        .map(|line: &str, out: &mut Emit<(), String>| out.emit((), line))
        .reduce(move |(), lines, out| {
            while let Some(line) = lines.next() {
                pause();
                out.emit(line, ());
            }
        })
}

/// The first record takes `number` milliseconds and reports progress all the time.
pub fn busy_record(choice: &Choice) -> Job {
    let time = Duration::from_millis(choice.number);
    Job::text().map_only(move |line: &str, out| {
        let began = Instant::now();
        while began.elapsed() < time {
            std::thread::sleep(Duration::from_millis(5));
            progress();
        }
        out.emit(line, ());
    })
}

/// A map whose record `wait PATH` waits until the file exists. It writes to `PATH.working` meanwhile.
pub fn gate_in_map(_: &Choice) -> Job {
    Job::text().map_only(|line: &str, out| {
        pass(line);
        out.emit(line, ());
    })
}

/// A reduce of one group, whose value `wait PATH` waits until the file exists. Any other value takes `number`
/// microseconds.
pub fn gate_in_reduce(choice: &Choice) -> Job {
    let pause = Duration::from_micros(choice.number);
    Job::text()
        .map(|line: &str, out: &mut Emit<(), String>| out.emit((), line))
        .reduce(move |(), lines, out| {
            while let Some(line) = lines.next() {
                std::thread::sleep(pause);
                pass(line);
                out.emit(line, ());
            }
        })
}

fn pass(line: &str) {
    if let Some(gate) = line.strip_prefix("wait ") {
        let working = format!("{gate}.working");
        while !Path::new(gate).exists() {
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&working)
                .expect("a file in the folder of the gate");
            file.write_all(b".").expect("a file that can grow");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
