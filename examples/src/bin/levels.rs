//! Sorts the lines of a log into one named output per level: `levels INPUT... --output DIR`.

use napreduce::output::{NamedOutput, Text};
use napreduce::{Job, Program};

/// Errors and warnings have named outputs; other lines go to the main output.
fn levels() -> Job {
    let errors = NamedOutput::new("errors", Text);
    let warnings = NamedOutput::new("warnings", Text);
    Job::text()
        .named_output(&errors)
        .named_output(&warnings)
        .map_only(move |line: &str, out| match line.split_once(' ') {
            Some(("ERROR", what)) => out.to(&errors).emit(what, ()),
            Some(("WARN", what)) => out.to(&warnings).emit(what, ()),
            _ => out.emit(line, ()),
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Sorts the lines of a log into errors, warnings and others")
        .examples("levels service.log --output levels")
        .main(levels)
}
