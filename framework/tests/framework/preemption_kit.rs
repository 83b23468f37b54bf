//! The test kit detects jobs that are not preemption-safe.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use napreduce::input::TextLines;
use napreduce::output::Text;
use napreduce::testing::{JobTest, assert_preemption_safe};
use napreduce::{Emit, Job, Mapper, Output, Reducer, Save, TaskError, Values, counter};

const LINES: &str = "one\ntwo\nthree\nfour\nfive\n";

/// Returns the test kit's message about a job that is not preemption-safe.
fn complaint(job: impl Fn() -> Job) -> String {
    let panicked = catch_unwind(AssertUnwindSafe(|| assert_preemption_safe(job, LINES)));
    let payload = panicked.expect_err("the job is not safe");
    payload
        .downcast::<String>()
        .map(|message| *message)
        .unwrap_or_else(|payload| {
            payload
                .downcast::<&str>()
                .map_or_else(|_| "no message".to_owned(), |message| (*message).to_owned())
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
        let bytes = state
            .try_into()
            .map_err(|_| TaskError::task("another length"))?;
        self.next = u64::from_le_bytes(bytes);
        Ok(())
    }
}

fn numbering(answer: Save, restores: bool) -> Job {
    Job::text()
        .mapper(Numbering {
            next: 0,
            answer,
            restores,
        })
        .reduce(|line, numbers, out| {
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
    assert!(
        message.starts_with("each task checkpointed at its boundary 2 "),
        "{message}"
    );
    let cause = "\ncause: job_0001_m_0000 checkpointed before input-0000 line 2, \"two\"; no state is saved there: it is a \
                 closure, or its `save` returns Stateless; ";
    assert!(message.contains(cause), "{message}");
}

#[test]
fn unrestorable_state_fails_kit() {
    let message = complaint(|| numbering(Save::Saved, false));
    assert!(
        message.contains("job_0001_m_0000.2 could not be restored"),
        "{message}"
    );
    assert!(message.ends_with("cannot make sense of it"), "{message}");
}

#[test]
fn unsaveable_mapper_is_named_first() {
    let message = complaint(|| numbering(Save::Unsupported, false));
    assert!(
        message.starts_with("the maps of this job cannot be checkpointed"),
        "{message}"
    );
    assert!(message.contains("; derive Resumable and call mapper_resumable, implement `save` and `restore`, or return Stateless"), "{message}");
}

#[test]
fn hidden_closure_state_fails_kit() {
    let message = complaint(|| {
        let seen = AtomicU64::new(0);
        Job::text()
            .map_only(move |line: &str, out| out.emit(seen.fetch_add(1, Ordering::Relaxed), line))
    });
    assert!(message.contains("part 0 has"), "{message}");
}

#[test]
fn unrepeatable_job_is_reported_as_such() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let message = complaint(|| {
        Job::text().map_only(|line: &str, out| out.emit(RUNS.fetch_add(1, Ordering::Relaxed), line))
    });
    assert!(
        message.contains("\ncause: two undisturbed runs differ already; "),
        "{message}"
    );
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
    let cause = "\ncause: `reduce` is called again for the rest of a group, since it resumes in groups; when `values.is_cut()` \
                 returns true, return with the partial result in the state, and write nothing";
    assert!(message.ends_with(cause), "{message}");
}

/// Numbers its groups and adds up their values; a part of the state is lost.
#[derive(Clone, Default)]
struct Lossy {
    groups: u64,
    values: u64,
    /// `restore` forgets it, instead of `save`.
    is_forgotten: bool,
}

impl Reducer for Lossy {
    type Group = String;
    type Key = String;
    type Value = u64;
    type Output = Text;

    fn reduce(
        &mut self,
        line: &str,
        lengths: &mut Values<'_, String, u64>,
        out: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        self.groups += 1;
        self.values += lengths.sum();
        out.emit((self.groups, line), self.values);
        Ok(())
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        state.extend_from_slice(&self.groups.to_le_bytes());
        if self.is_forgotten {
            state.extend_from_slice(&self.values.to_le_bytes());
        }
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let groups = state
            .first_chunk()
            .ok_or_else(|| TaskError::task("no state"))?;
        self.groups = u64::from_le_bytes(*groups);
        Ok(())
    }
}

fn lossy(is_forgotten: bool) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, line.len() as u64))
        .reducer(Lossy {
            is_forgotten,
            ..Lossy::default()
        })
}

#[test]
fn field_missing_in_save_is_reported_with_group() {
    let message = complaint(|| lossy(false));
    let cause = "\ncause: job_0001_r_0000 checkpointed after partition 0 group 0, key \"five\"; the state saved there and the \
                 state saved right after the restore are the same 8 bytes, so what has been lost is not in them; look for \
                 fields that `save` does not write, or that have #[resumable(skip)]";
    assert!(message.ends_with(cause), "{message}");
}

/// Adds up the values of a group; what it has added before a checkpoint inside the group is lost.
#[test]
fn state_lost_inside_group_is_reported_with_group() {
    #[derive(Clone)]
    struct Sum(u64);
    impl Reducer for Sum {
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
            self.0 += lines.count();
            if !lines.is_cut() {
                out.emit(length, std::mem::take(&mut self.0));
            }
            Ok(())
        }

        fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
            Ok(Save::Stateless)
        }

        fn resumes_in_group(&self) -> bool {
            true
        }
    }
    let message = complaint(|| {
        Job::text()
            .map(|line: &str, out: &mut Emit<u64, String>| out.emit(line.len() as u64, line))
            .reducer(Sum(0))
    });
    let cause = "\ncause: job_0001_r_0000 checkpointed inside partition 0 group 0, key \
                 b\"\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x03\"; no state is saved there: ";
    assert!(message.contains(cause), "{message}");
}

#[test]
fn field_missing_in_restore_is_reported_with_bytes() {
    let message = complaint(|| lossy(true));
    let cause = "\ncause: job_0001_r_0000 checkpointed after partition 0 group 0, key \"five\"; the state saved there has 16 \
                 bytes and the state saved right after the restore has 16, which differ from byte 8: \
                 b\"\\x04\\x00\\x00\\x00\\x00\\x00\\x00\\x00\" and b\"\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"; look for what \
                 `restore` does not set";
    assert!(message.ends_with(cause), "{message}");
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
    let job = || {
        Job::text()
            .mapper(Listening::default())
            .reduce(|line, _, out| out.emit(line, ()))
    };
    let message = complaint(job);
    assert!(
        message.ends_with("counter \"stops\" is 1 instead of 0"),
        "{message}"
    );
}

#[test]
fn failing_job_is_named_with_interruption() {
    let message = complaint(|| {
        Job::text().map_only(|line: &str, out: &mut Output<Text>| -> Result<(), String> {
            out.emit(line, ());
            if line == "four" {
                Err("four is too many".to_owned())
            } else {
                Ok(())
            }
        })
    });
    assert!(
        message.starts_with("job_0001_m_0000.1 failed, undisturbed: four is too many"),
        "{message}"
    );
}

fn panic_of(call: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("it panics");
    panic.downcast_ref::<String>().expect("a message").clone()
}

#[test]
fn fold_that_is_not_associative_is_named() {
    let means = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<String, u64>| {
                out.emit("all", line.parse().expect("a number"))
            })
            .reduce_by_key(|mean, more| *mean = (*mean + more) / 2)
    };
    let test = JobTest::new(means).input("1\n5\n9\n17\n");
    let message = panic_of(|| test.assert_preemption_safe());
    assert!(
        message.contains("\ncause: the fold of `combine` is not associative"),
        "{message}"
    );
}

#[test]
fn numbers_of_a_test_are_checked() {
    let test = || JobTest::new(|| Job::text().flat_map(napreduce::words).count()).input("to be\n");
    for (message, refused) in [
        ("reduces 0: use 1 to 100000", test().reduces(0)),
        (
            "reduces 4294967295: use 1 to 100000",
            test().reduces(u32::MAX),
        ),
        ("split size 0: use at least 1", test().split_size(0)),
        ("task memory 0B: use 1MiB to 1TiB", test().task_memory(0)),
    ] {
        assert_eq!(panic_of(|| drop(refused.run())), message);
    }
}
