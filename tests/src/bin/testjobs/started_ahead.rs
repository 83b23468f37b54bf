//! A job that outputs the environment of its processes, in a program that does work before `main` reaches the
//! job.

use std::hash::{BuildHasher, RandomState};
use std::process::Command;
use std::{env, fs, process, thread};

use napreduce::Job;

use crate::Choice;

/// The variable that selects the work before `main` reaches the job.
const VARIABLE: &str = "TESTJOBS_FIRST";

/// Does the work before `main` reaches the job.
pub fn do_first() {
    match env::var(VARIABLE).as_deref() {
        Ok("print") => {
            println!("printed first");
            eprintln!("complained first");
        }
        Ok("begin-a-thread") => drop(thread::spawn(|| {
            loop {
                thread::park();
            }
        })),
        Ok("end-when-idle") if marker() == "--napreduce-idle-process" => process::exit(3),
        _ => {}
    }
}

fn marker() -> String {
    env::args().nth(1).unwrap_or_default()
}

/// Writes for each line: the attempt from the environment, from that of a child, and from the directory; the
/// process's marker; its identity before the attempt was known, or `-`; the address of its code; and a hash,
/// which the standard library seeds in each process.
pub fn outfits(_: &Choice) -> Job {
    Job::text().map_only(|line: &str, out| {
        let attempt = env::var("NAPREDUCE_ATTEMPT_ID").expect("every task has it");
        let id = Command::new("sh")
            .args(["-c", "echo $NAPREDUCE_ATTEMPT_ID$NAPREDUCE_PRESTART"])
            .output();
        let id = String::from_utf8(id.expect("a shell").stdout).expect("text");
        let place = env::current_dir().expect("a place");
        let place = place
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let began_with = fs::read("/proc/self/environ").expect("variables");
        let began_with = String::from_utf8_lossy(&began_with);
        let ahead = began_with
            .split('\0')
            .find_map(|variable| variable.strip_prefix("NAPREDUCE_PRESTART="));
        let ahead = ahead.unwrap_or("-");
        let code = do_first as *const () as usize;
        let hash = RandomState::new().hash_one(0);
        out.emit(
            line,
            format!(
                "{attempt} {} {place} {} {ahead} {code} {hash}",
                id.trim(),
                marker()
            ),
        );
    })
}
