//! Adds a mapper whose state is to be saved, but derives nothing.
//! The expected error is in the `.stderr` file.
use napreduce::input::TextLines;
use napreduce::{Emit, Job, Mapper, TaskError};

#[derive(Clone, Default)]
struct Numbered {
    lines: u64,
}

impl Mapper for Numbered {
    type Input = TextLines;
    type Key = u64;
    type Value = String;

    fn map(&mut self, line: &str, out: &mut Emit<u64, String>) -> Result<(), TaskError> {
        self.lines += 1;
        out.emit(self.lines, line);
        Ok(())
    }
}

fn main() {
    let _ = Job::text().mapper_resumable(Numbered::default());
}
