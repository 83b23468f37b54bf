//! Keeps the lines that are numbers, without a reduce, and what is none beside them: `stored-numbers
//! s3://bucket/lines --output s3://bucket/numbers`.
//!
//! Owns nothing but the job. Where its input and its output are, the job does not know.

use std::process::ExitCode;

use napreduce::output::{NamedOutput, Text};
use napreduce::{Job, Program};

fn stored_numbers(_: &()) -> Job {
    let errors = NamedOutput::new("errors", Text);
    Job::text().named_output(&errors).map_only(move |line: &str, out| match line.parse::<u64>() {
        Ok(number) => out.emit(number, ()),
        Err(why) => out.to(&errors).emit(why.to_string(), line),
    })
}

fn main() -> ExitCode {
    Program::new()
        .about("Keeps the lines that are numbers")
        .examples(
            "stored-numbers s3://bucket/lines/ --output s3://bucket/numbers
             stored-numbers lines.txt --output numbers",
        )
        .main(stored_numbers)
}
