//! User code that holds records back, and lets go of them in front of a checkpoint instead of saving them.
//!
//! Owns `flush` of mappers and reducers. Does not own what is saved (`preemption_state`).

use napreduce::input::TextLines;
use napreduce::output::Text;
use napreduce::testing::JobTest;
use napreduce::{Emit, Job, Mapper, Output, Reducer, Save, TaskError, Values};

/// Holds so many back.
const HELD_MOST: usize = 3;

#[derive(Clone, Default)]
struct Held(Vec<String>);

impl Mapper for Held {
    type Input = TextLines;
    type Key = String;
    type Value = ();

    fn map(&mut self, line: &str, out: &mut Emit<String, ()>) -> Result<(), TaskError> {
        self.0.push(line.to_owned());
        if self.0.len() == HELD_MOST { Mapper::flush(self, out) } else { Ok(()) }
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
        if self.0.len() == HELD_MOST { Reducer::flush(self, out) } else { Ok(()) }
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
fn what_is_held_back_is_let_go_of_in_front_of_a_checkpoint() {
    let job = || Job::text().mapper(Held::default()).reducer(Held::default());
    let test = JobTest::new(job).input("to\nbe\nor\nnot\nto\nbe\nthat\nis\n").reduces(1);
    assert_eq!(test.run().text(), "be 2\nis 1\nnot 1\nor 1\nthat 1\nto 2\n");
    test.assert_preemption_safe();
}
