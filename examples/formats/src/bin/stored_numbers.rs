//! Keeps the lines that are numbers and writes the others to a named output, without a reduce:
//! `stored-numbers s3://bucket/lines --output s3://bucket/numbers`.

use napreduce::output::{NamedOutput, Text};
use napreduce::{Job, Program};

fn stored_numbers() -> Job {
    let errors = NamedOutput::new("errors", Text);
    Job::text()
        .named_output(&errors)
        .map_only(move |line: &str, out| match line.parse::<u64>() {
            Ok(number) => out.emit(number, ()),
            Err(why) => out.to(&errors).emit(why.to_string(), line),
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Keeps the lines that are numbers")
        .examples(
            "stored-numbers s3://bucket/lines/ --output s3://bucket/numbers
             stored-numbers lines.txt --output numbers",
        )
        .main(stored_numbers)
}
