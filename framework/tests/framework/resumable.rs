//! Mappers and reducers whose state is saved by `derive(Resumable)`, with all their methods.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use napreduce::input::TextLines;
use napreduce::output::Text;
use napreduce::testing::JobTest;
use napreduce::{
    Emit, Job, Mapper, Output, Reducer, Resumable, TaskError, TaskInfo, Values, counter,
};

const LINES: &str = "to be or not\nto be\nthat is\nthe question\nwhether\nit is\n";

/// Emits the words that follow each word, in batches that a checkpoint flushes.
#[derive(Resumable, Clone, Default)]
struct Followers {
    last: String,
    emitted: BTreeMap<String, u64>,
    #[resumable(skip)]
    batch: Vec<(String, String)>,
    #[resumable(skip)]
    has_input: bool,
    #[resumable(skip)]
    is_suspended: bool,
}

impl Mapper for Followers {
    type Input = TextLines;
    type Key = String;
    type Value = String;

    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        self.has_input = task.input().is_some();
        Ok(())
    }

    fn map(&mut self, line: &str, out: &mut Emit<String, String>) -> Result<(), TaskError> {
        assert!(
            self.has_input && !self.is_suspended,
            "set up, and not suspended"
        );
        for word in line.split(' ') {
            *self.emitted.entry(word.to_owned()).or_default() += 1;
            self.batch.push((
                std::mem::replace(&mut self.last, word.to_owned()),
                word.to_owned(),
            ));
        }
        if self.batch.len() > 4 {
            self.flush(out)
        } else {
            Ok(())
        }
    }

    fn flush(&mut self, out: &mut Emit<String, String>) -> Result<(), TaskError> {
        self.batch
            .drain(..)
            .for_each(|(before, word)| out.emit(&before, &word));
        Ok(())
    }

    fn on_suspend(&mut self) -> Result<(), TaskError> {
        self.is_suspended = true;
        Ok(())
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        assert!(std::mem::take(&mut self.is_suspended), "it was suspended");
        Ok(())
    }

    fn finish(&mut self, out: &mut Emit<String, String>) -> Result<(), TaskError> {
        self.flush(out)?;
        for (word, count) in &self.emitted {
            out.emit("counts", &format!("{word}={count}"));
        }
        Ok(())
    }
}

/// Joins the values of a group, which may be cut between any two of them.
#[derive(Resumable, Clone, Default)]
struct Joined {
    values: Vec<String>,
    groups: u64,
    #[resumable(skip)]
    buffer: Vec<String>,
}

impl Reducer for Joined {
    type Group = String;
    type Key = String;
    type Value = String;
    type Output = Text;

    fn setup(&mut self, _: &TaskInfo<'_>, out: &mut Output<Text>) -> Result<(), TaskError> {
        out.emit("begin", ());
        Ok(())
    }

    fn reduce(
        &mut self,
        word: &str,
        followers: &mut Values<'_, String, String>,
        _: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        while let Some(follower) = followers.next() {
            self.values.push(follower.to_owned());
        }
        if !followers.is_cut() {
            self.groups += 1;
            self.buffer
                .push(format!("{} {word}: {}", self.groups, self.values.join(" ")));
            self.values.clear();
        }
        Ok(())
    }

    fn flush(&mut self, out: &mut Output<Text>) -> Result<(), TaskError> {
        self.buffer.drain(..).for_each(|line| out.emit(line, ()));
        Ok(())
    }

    fn resumes_in_group(&self) -> bool {
        true
    }

    fn on_suspend(&mut self) -> Result<(), TaskError> {
        self.buffer.shrink_to_fit();
        Ok(())
    }

    fn finish(&mut self, out: &mut Output<Text>) -> Result<(), TaskError> {
        self.flush(out)?;
        out.emit("end", self.groups);
        Ok(())
    }
}

#[test]
fn derived_states_are_preemption_safe() {
    let job = || {
        Job::text()
            .mapper_resumable(Followers::default())
            .reducer_resumable(Joined::default())
    };
    let test = JobTest::new(job).input(LINES);
    let output = test.run().text();
    assert!(
        output.starts_with("begin\n1 : to\n2 be: or that\n"),
        "{output}"
    );
    assert!(
        output.contains(" counts: be=2 is=2 it=1 not=1 "),
        "{output}"
    );
    assert!(output.ends_with("\nend\t12\n"), "{output}");
    test.assert_preemption_safe();
    JobTest::new(job)
        .input(LINES)
        .split_size(20)
        .reduces(2)
        .assert_preemption_safe();
}

/// Numbers its lines; one of the numbers is not saved.
#[derive(Resumable, Clone, Default)]
struct Numbering {
    saved: u64,
    #[resumable(skip)]
    skipped: u64,
}

impl Mapper for Numbering {
    type Input = TextLines;
    type Key = u64;
    type Value = u64;

    fn map(&mut self, _: &str, out: &mut Emit<u64, u64>) -> Result<(), TaskError> {
        self.saved += 1;
        self.skipped += 1;
        counter!("numbered").add(1);
        out.emit(self.saved, self.skipped);
        Ok(())
    }
}

#[test]
fn skipped_state_is_reported_with_line() {
    let job = || {
        Job::text()
            .mapper_resumable(Numbering::default())
            .reduce(|number, others, out| out.emit(number, others.sum()))
    };
    let ran = catch_unwind(AssertUnwindSafe(|| {
        JobTest::new(job).input(LINES).assert_preemption_safe()
    }));
    let message = *ran
        .expect_err("a number is lost")
        .downcast::<String>()
        .expect("a message");
    let cause = "\ncause: job_0001_m_0000 checkpointed before input-0000 line 2, \"to be\"; the state saved there and the state \
                 saved right after the restore are the same ";
    assert!(message.contains(cause), "{message}");
    assert!(
        message.ends_with("or that have #[resumable(skip)]"),
        "{message}"
    );
}
