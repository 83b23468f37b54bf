//! Jobs whose tasks wait for a file, their gate, and can be preempted until it exists.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use napreduce::input::TextLines;
use napreduce::output::{NamedOutput, Text};
use napreduce::{Emit, Job, Mapper, Save, TaskError};

use crate::Choice;

/// Memory of each map of `gated_holding`, in bytes.
const HELD_BYTES: u64 = 128 << 20;

/// The duration of a record or a group while the gate is closed.
const PAUSE: Duration = Duration::from_millis(10);

/// Each input line contains the gate of its map and the gate of its reduce, and ends in a word, which is
/// `last` in the last line. Each line is a record of the map and a group of the reduce. The last record and
/// the last group wait until the gate of their task is open.
pub fn gated(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            let (own, rest) = line.split_once('\t').unwrap_or((line, line));
            pass(own, line);
            out.emit(rest, 1);
        })
        .reduce(|key, counts, out| {
            let (gate, _) = key.split_once('\t').unwrap_or((key, key));
            pass(gate, key);
            out.emit(key, counts.sum());
        })
}

/// The same, and each finished record or group appends the process ID to a file named like its gate with
/// `.done`.
pub fn gated_noted(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            let (own, rest) = line.split_once('\t').unwrap_or((line, line));
            pass(own, line);
            out.emit(rest, 1);
            note(own);
        })
        .reduce(|key, counts, out| {
            let (gate, _) = key.split_once('\t').unwrap_or((key, key));
            pass(gate, key);
            out.emit(key, counts.sum());
            note(gate);
        })
}

fn note(gate: &str) {
    let noted = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(format!("{gate}.done"));
    noted
        .and_then(|mut file| file.write_all(format!("{}\n", std::process::id()).as_bytes()))
        .expect("a file that can be written");
}

/// The same, with a reduce that also writes each of its lines to a named output.
pub fn gated_named(_: &Choice) -> Job {
    let lines = NamedOutput::new("lines", Text);
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            let (own, rest) = line.split_once('\t').unwrap_or((line, line));
            pass(own, line);
            out.emit(rest, 1);
        })
        .named_output(&lines)
        .reduce(move |key, counts, out| {
            let (gate, line) = key.split_once('\t').unwrap_or((key, key));
            pass(gate, key);
            out.to(&lines).emit(line, ());
            out.emit(key, counts.sum());
        })
}

/// The same, with maps that allocate memory at their first line and read all of it at the last one.
pub fn gated_holding(_: &Choice) -> Job {
    static HELD: OnceLock<Vec<u64>> = OnceLock::new();
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            // Distinct numbers, so that the kernel cannot merge or discard pages.
            let held = HELD.get_or_init(|| (0..HELD_BYTES / 8).collect());
            let (own, rest) = line.split_once('\t').unwrap_or((line, line));
            pass(own, line);
            if line.ends_with("last") {
                assert!(
                    (0..).zip(held).all(|(number, kept)| number == *kept),
                    "memory came back changed"
                );
            }
            out.emit(rest, 1);
        })
        .reduce(|key, counts, out| out.emit(key, counts.sum()))
}

/// The same, with a mapper that counts its lines and does not support checkpoints.
pub fn gated_unsaved(_: &Choice) -> Job {
    counting(Saving::Never)
}

/// The same, with a mapper that counts its lines and saves slowly: it creates a file named like its gate with
/// `.saving`, and waits for one with `.saved`.
pub fn gated_saving(_: &Choice) -> Job {
    counting(Saving::Gated)
}

fn counting(saving: Saving) -> Job {
    let mapper = Counting {
        lines: 0,
        gates: (String::new(), String::new()),
        saving,
    };
    Job::text().mapper(mapper).reduce(|key, counts, out| {
        let (gate, _) = key.split_once('\t').unwrap_or((key, key));
        pass(gate, key);
        out.emit(key, counts.sum());
    })
}

#[derive(Clone, Copy)]
enum Saving {
    Never,
    Gated,
}

#[derive(Clone)]
struct Counting {
    lines: u64,
    /// The gates of the map and of its reduce.
    gates: (String, String),
    saving: Saving,
}

impl Mapper for Counting {
    type Input = TextLines;
    type Key = String;
    type Value = u64;

    fn map(&mut self, line: &str, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
        let (own, rest) = line.split_once('\t').unwrap_or((line, line));
        let (reduce, _) = rest.split_once('\t').unwrap_or((rest, rest));
        if self.lines == 0 {
            self.gates = (own.to_owned(), reduce.to_owned());
        }
        self.lines += 1;
        pass(own, line);
        out.emit(rest, 1);
        Ok(())
    }

    fn finish(&mut self, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
        out.emit(&format!("{}\tlines", self.gates.1), self.lines);
        Ok(())
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        let gate = &self.gates.0;
        match self.saving {
            Saving::Never => return Ok(Save::Unsupported),
            // `save` is also called on the prototype, to find out whether it is supported.
            Saving::Gated if self.lines > 0 => {
                let written = fs::write(format!("{gate}.saving"), "");
                written.map_err(|error| {
                    TaskError::task(format!("cannot write {gate}.saving: {error}"))
                })?;
                while !Path::new(&format!("{gate}.saved")).exists() {
                    std::thread::sleep(PAUSE);
                }
            }
            Saving::Gated => {}
        }
        let (own, reduce) = &self.gates;
        state.extend_from_slice(format!("{} {own} {reduce}", self.lines).as_bytes());
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let text = String::from_utf8_lossy(state);
        let words: Vec<&str> = text.split(' ').collect();
        let [lines, own, reduce] = words[..] else {
            return Err(TaskError::task("a saved state of another form"));
        };
        self.lines = lines
            .parse()
            .map_err(|_| TaskError::task("an invalid saved count"))?;
        self.gates = (own.to_owned(), reduce.to_owned());
        Ok(())
    }
}

/// Pauses while the gate is closed; in the last record or group, waits until it is open. A task has one gate,
/// which is not checked again after it was open.
fn pass(gate: &str, record: &str) {
    static OPEN: AtomicBool = AtomicBool::new(false);
    let is_last = record.ends_with("last");
    while !OPEN.load(Ordering::Relaxed) {
        if Path::new(gate).exists() {
            OPEN.store(true, Ordering::Relaxed);
        } else {
            std::thread::sleep(PAUSE);
            if !is_last {
                return;
            }
        }
    }
}
