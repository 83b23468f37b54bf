//! User code that buffers records and emits them in `flush` before a checkpoint.

use napreduce::input::TextLines;
use napreduce::output::Text;
use napreduce::testing::JobTest;
use napreduce::{Emit, Job, Mapper, Output, Reducer, Save, TaskError, Values};

/// Number of records held back.
const HELD_MOST: usize = 3;

#[derive(Clone, Default)]
struct Held(Vec<String>);

impl Mapper for Held {
    type Input = TextLines;
    type Key = String;
    type Value = ();

    fn map(&mut self, line: &str, out: &mut Emit<String, ()>) -> Result<(), TaskError> {
        self.0.push(line.to_owned());
        if self.0.len() == HELD_MOST {
            Mapper::flush(self, out)
        } else {
            Ok(())
        }
    }

    fn flush(&mut self, out: &mut Emit<String, ()>) -> Result<(), TaskError> {
        self.0.drain(..).for_each(|line| out.emit(&line, ()));
        Ok(())
    }

    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        assert!(self.0.is_empty(), "it was flushed");
        Ok(Save::Stateless)
    }

    fn finish(&mut self, out: &mut Emit<String, ()>) -> Result<(), TaskError> {
        Mapper::flush(self, out)
    }
}

impl Reducer for Held {
    type Group = String;
    type Key = String;
    type Value = ();
    type Output = Text;

    fn reduce(
        &mut self,
        line: &str,
        values: &mut Values<'_, String, ()>,
        out: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        self.0.push(format!("{line} {}", values.count()));
        if self.0.len() == HELD_MOST {
            Reducer::flush(self, out)
        } else {
            Ok(())
        }
    }

    fn flush(&mut self, out: &mut Output<Text>) -> Result<(), TaskError> {
        self.0.drain(..).for_each(|line| out.emit(line, ()));
        Ok(())
    }

    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        assert!(self.0.is_empty(), "it was flushed");
        Ok(Save::Stateless)
    }

    fn finish(&mut self, out: &mut Output<Text>) -> Result<(), TaskError> {
        Reducer::flush(self, out)
    }
}

#[test]
fn buffered_output_is_flushed_before_checkpoint() {
    let job = || Job::text().mapper(Held::default()).reducer(Held::default());
    let test = JobTest::new(job)
        .input("to\nbe\nor\nnot\nto\nbe\nthat\nis\n")
        .reduces(1);
    assert_eq!(test.run().text(), "be 2\nis 1\nnot 1\nor 1\nthat 1\nto 2\n");
    test.assert_preemption_safe();
}
