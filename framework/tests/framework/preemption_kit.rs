//! The test kit detects jobs that are not preemption-safe.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use napreduce::input::TextLines;
use napreduce::output::Text;
use napreduce::testing::assert_preemption_safe;
use napreduce::{Emit, Job, Mapper, Output, Reducer, Save, TaskError, Values, counter};

const LINES: &str = "one\ntwo\nthree\nfour\nfive\n";

/// Returns the test kit's message about a job that is not preemption-safe.
fn complaint(job: impl Fn() -> Job) -> String {
    let panicked = catch_unwind(AssertUnwindSafe(|| assert_preemption_safe(job, LINES)));
    let payload = panicked.expect_err("the job is not safe");
    payload.downcast::<String>().map(|message| *message).unwrap_or_else(|payload| {
        payload.downcast::<&str>().map_or_else(|_| "no message".to_owned(), |message| (*message).to_owned())
    })
}

/// Numbers its lines; `save` returns a given result.
#[derive(Clone)]
struct Numbering {
    next: u64,
    answer: Save,
    restores: bool,
}

impl Mapper for Numbering {
    type Input = TextLines;
    type Key = String;
    type Value = u64;

    fn map(&mut self, line: &str, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
        self.next += 1;
        out.emit(line, self.next);
        Ok(())
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        state.extend_from_slice(&self.next.to_le_bytes());
        Ok(self.answer)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        if !self.restores {
            return Err(TaskError::task("cannot make sense of it"));
        }
        let bytes = state.try_into().map_err(|_| TaskError::task("another length"))?;
        self.next = u64::from_le_bytes(bytes);
        Ok(())
    }
}

fn numbering(answer: Save, restores: bool) -> Job {
    Job::text().mapper(Numbering { next: 0, answer, restores }).reduce(|line, numbers, out| {
        out.emit(line, numbers.sum());
    })
}

#[test]
fn saving_mapper_passes_kit() {
    assert_preemption_safe(|| numbering(Save::Saved, true), LINES);
}

#[test]
fn incomplete_state_fails_kit() {
    let message = complaint(|| numbering(Save::Stateless, true));
    assert!(message.starts_with("each task checkpointed at its boundary 2 "), "{message}");
}

#[test]
fn unrestorable_state_fails_kit() {
    let message = complaint(|| numbering(Save::Saved, false));
    assert!(message.contains("job_0001_m_0000.2 could not be restored"), "{message}");
    assert!(message.ends_with("cannot make sense of it"), "{message}");
}

#[test]
fn unsaveable_mapper_is_named_first() {
    let message = complaint(|| numbering(Save::Unsupported, false));
    assert!(message.starts_with("the maps of this job cannot be checkpointed"), "{message}");
    assert!(message.contains("implement `save` and `restore`, or return Stateless"), "{message}");
}

#[test]
fn hidden_closure_state_fails_kit() {
    let message = complaint(|| {
        let seen = AtomicU64::new(0);
        Job::text().map_only(move |line: &str, out| out.emit(seen.fetch_add(1, Ordering::Relaxed), line))
    });
    assert!(message.contains("part 0 has"), "{message}");
}

/// Resumes inside a group without checking whether the group was interrupted.
#[derive(Clone)]
struct Hasty;

impl Reducer for Hasty {
    type Group = u64;
    type Key = u64;
    type Value = String;
    type Output = Text;

    fn reduce(
        &mut self,
        length: u64,
        lines: &mut Values<'_, u64, String>,
        out: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        out.emit(length, lines.count());
        Ok(())
    }

    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Stateless)
    }

    fn resumes_in_group(&self) -> bool {
        true
    }
}

#[test]
fn reducer_ignoring_resumed_group_fails_kit() {
    let message = complaint(|| {
        Job::text()
            .map(|line: &str, out: &mut Emit<u64, String>| out.emit(line.len() as u64, line))
            .reducer(Hasty)
    });
    assert!(message.contains("part 0 has"), "{message}");
}

/// Counts suspends and resumes.
#[derive(Clone, Default)]
struct Listening {
    stopped: bool,
}

impl Mapper for Listening {
    type Input = TextLines;
    type Key = String;
    type Value = ();

    fn map(&mut self, line: &str, out: &mut Emit<String, ()>) -> Result<(), TaskError> {
        assert!(!self.stopped, "it works while it is stopped");
        out.emit(line, ());
        Ok(())
    }

    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Stateless)
    }

    fn on_suspend(&mut self) -> Result<(), TaskError> {
        counter!("stops").add(1);
        self.stopped = true;
        Ok(())
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        assert!(std::mem::take(&mut self.stopped), "it was not stopped");
        Ok(())
    }
}

#[test]
fn suspend_hooks_are_called_and_counted() {
    let job = || Job::text().mapper(Listening::default()).reduce(|line, _, out| out.emit(line, ()));
    let message = complaint(job);
    assert!(message.ends_with("counter \"stops\" is 1 instead of 0"), "{message}");
}

#[test]
fn failing_job_is_named_with_interruption() {
    let message = complaint(|| {
        Job::text().map_only(|line: &str, out: &mut Output<Text>| -> Result<(), String> {
            out.emit(line, ());
            if line == "four" { Err("four is too many".to_owned()) } else { Ok(()) }
        })
    });
    assert!(message.starts_with("job_0001_m_0000.1 failed, undisturbed: four is too many"), "{message}");
}
