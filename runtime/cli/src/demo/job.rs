//! The job of the demonstration: a word count with a pause at each word, which can wait for a file. It is part of `nap`,
//! so that no other program is needed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use napreduce::builder::Sum;
use napreduce::{Driver, Emit, Job, Program, words};
use serde::{Deserialize, Serialize};

use super::LOOK;
use crate::failure;
use crate::parent::end_with_parent;

/// The command with which `nap demo` runs the job.
pub const NAME: &str = "demo-job";
const LINES: u32 = 500;
const WORDS_OF_LINE: u32 = 8;

#[derive(Debug, Args, Serialize, Deserialize)]
struct Pauses {
    /// Pause of the reduce at each word, in milliseconds
    #[arg(long, value_name = "MILLIS")]
    pause: u64,

    /// Wait for this file before words from `--hold-at` on
    #[arg(long, value_name = "FILE", requires = "hold_at")]
    hold: Option<PathBuf>,

    /// The first word that waits
    #[arg(long, value_name = "WORD", requires = "hold")]
    hold_at: Option<String>,
}

fn slow_count(pauses: &Pauses) -> Job {
    let pause = Duration::from_millis(pauses.pause);
    let hold = pauses.hold.clone().zip(pauses.hold_at.clone());
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            words(line).for_each(|word| out.emit(word, 1))
        })
        .combine(Sum::add)
        .reduce(move |word, counts, out| {
            sleep(pause);
            if let Some((file, first)) = &hold
                && is_held(word, first)
            {
                wait_for(file);
            }
            out.emit(word, counts.sum());
        })
}

/// Returns whether a word waits if the words from `first` on do.
fn is_held(word: &str, first: &str) -> bool {
    word >= first
}

fn wait_for(file: &Path) {
    while !file.exists() {
        sleep(LOOK);
    }
}

/// Runs the job, on the arguments after the name of the command.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    if let Err(error) = end_with_parent() {
        failure::print(&error);
        return ExitCode::FAILURE;
    }
    let program = Program::new()
        .about("The job of nap demo")
        .called("nap demo-job", arguments);
    program.drive(|driver: &mut Driver<'_>, pauses: &Pauses| {
        driver.job(slow_count).parameters(pauses).run().map(drop)
    })
}

/// Makes the reduces of a job wait for a file.
pub struct Hold<'a> {
    pub file: &'a Path,
    /// The first word at which they wait.
    pub at: &'a str,
}

/// One run of the job: its input, which is also the name of its queue, and its output.
pub struct Count {
    pub name: &'static str,
    pub output: PathBuf,
    input: PathBuf,
    reduces: u32,
}

impl Count {
    /// Writes the input, with this number of different words.
    pub fn write(folder: &Path, name: &'static str, reduces: u32, words: u32) -> Result<Count> {
        let input = folder.join(format!("{name}.txt"));
        let output = folder.join(name);
        let mut text = String::new();
        for index in 0..LINES * WORDS_OF_LINE {
            let end = if (index + 1).is_multiple_of(WORDS_OF_LINE) {
                '\n'
            } else {
                ' '
            };
            text.push_str(&format!("{name}-{:03}{end}", index % words));
        }
        fs::write(&input, text).with_context(|| format!("cannot write {}", input.display()))?;
        Ok(Count {
            name,
            output,
            input,
            reduces,
        })
    }

    /// Returns the arguments of `nap` that run the job.
    pub fn line(&self, pause: Duration, hold: Option<&Hold<'_>>, output: &Path) -> Vec<OsString> {
        let mut line = vec![
            NAME.into(),
            self.input.clone().into(),
            "--output".into(),
            output.into(),
        ];
        let reduces = self.reduces.to_string();
        let pause = pause.as_millis().to_string();
        line.extend(
            [
                "--reduces",
                &reduces,
                "--pause",
                &pause,
                "--name",
                self.name,
                "--quiet",
            ]
            .map(OsString::from),
        );
        if let Some(hold) = hold {
            line.extend(["--hold".into(), hold.file.into()]);
            line.extend(["--hold-at".into(), hold.at.into()]);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_from_the_named_one_on_are_held() {
        let held: Vec<&str> = [
            "research-000",
            "research-099",
            "research-100",
            "research-139",
        ]
        .into_iter()
        .filter(|word| is_held(word, "research-100"))
        .collect();
        assert_eq!(held, ["research-100", "research-139"]);
    }

    #[test]
    fn wait_ends_when_the_file_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("taken");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                wait_for(&file);
                file.exists()
            });
            fs::write(folder.path().join("other"), "").expect("written");
            std::thread::yield_now();
            fs::write(&file, "").expect("written");
            assert!(waiting.join().expect("no panic"));
        });
    }

    #[test]
    fn input_has_every_word() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, count) in [("research", 140), ("production", 24)] {
            let written = Count::write(folder.path(), name, 1, count).expect("written");
            let text = fs::read_to_string(written.input).expect("it is there");
            let different: std::collections::BTreeSet<&str> = words(&text).collect();
            assert_eq!(different.len(), count as usize, "{name}");
        }
    }
}
