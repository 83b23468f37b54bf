//! Task processes that are started before there is an attempt for them.
//!
//! Reaching `main` takes most of the time of a short task. A prestarted process is a fork of a process that
//! waits just before `main` (`fork_server`); it runs one attempt and ends.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use napreduce_protocol::{Outfit, OutfitVariable, ToTask, encode, lock};
use napreduce_task::{PRESTART_VARIABLE, send_with_descriptors};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{RecvFlags, recv};

use super::child::{ChildProcess, Started};
use super::launch::{Executable, Launch, TaskOutput};

/// Prestarted processes of a program are ended after this idle time.
pub(super) const KEPT_FOR: Duration = Duration::from_secs(10);

/// Maximum programs with prestarted processes; beyond it, those of the least recently used program are ended.
const PROGRAMS_MAX: usize = 4;

/// The properties that make prestarted processes interchangeable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Model {
    program: Option<Executable>,
    environment: Option<Vec<(OsString, OsString)>>,
    pub(super) is_silent: bool,
    /// Whether it prints to files of its attempt.
    prints_to_files: bool,
}

impl Model {
    pub(super) fn for_launch(launch: &Launch) -> Model {
        Model {
            program: launch.program.clone(),
            environment: launch.environment.clone(),
            is_silent: launch.is_silent,
            prints_to_files: launch.output.is_some(),
        }
    }

    /// Returns the launch of a fork server for this model.
    pub(super) fn launch(&self, name: &str) -> Launch {
        Launch {
            variables: vec![(PRESTART_VARIABLE, Some(name.into()))],
            environment: self.environment.clone(),
            program: self.program.clone(),
            directory: None,
            output: None,
            is_silent: true,
        }
    }

    /// Returns the output files for text printed before an attempt is assigned.
    pub(super) fn output(&self) -> io::Result<Option<TaskOutput>> {
        let file = || memfd_create("napreduce-prestart", MemfdFlags::CLOEXEC).map(File::from);
        Ok(if self.prints_to_files {
            Some(TaskOutput {
                stdout: file()?,
                stderr: file()?,
            })
        } else {
            None
        })
    }
}

#[derive(Debug)]
struct Program {
    model: Model,
    waiting: Vec<Started>,
    asked: Instant,
    /// Whether it cannot be prestarted: it starts threads early or exits.
    is_unfit: bool,
}

#[derive(Debug)]
struct Programs {
    known: Vec<Program>,
    /// Number of expected requests, if known.
    expected: Option<u64>,
}

/// The waiting processes.
#[derive(Debug)]
pub(super) struct Prestarts {
    /// Maximum per program.
    most: usize,
    programs: Mutex<Programs>,
}

impl Prestarts {
    pub(super) fn new(most: usize, expected: Option<u64>) -> Prestarts {
        Prestarts {
            most,
            programs: Mutex::new(Programs {
                known: Vec::new(),
                expected,
            }),
        }
    }

    /// Locks the state; no panic can leave it half-changed.
    fn lock(&self) -> MutexGuard<'_, Programs> {
        lock(&self.programs)
    }

    /// Records a request for a process of this model.
    pub(super) fn expect_one_less(&self, model: &Model) {
        let mut programs = self.lock();
        programs.expected = programs.expected.map(|expected| expected.saturating_sub(1));
        if let Some(program) = programs
            .known
            .iter_mut()
            .find(|program| program.model == *model)
        {
            program.asked = Instant::now();
        }
    }

    /// Takes a waiting process, preferably one that has sent `Hello`.
    pub(super) fn take(&self, model: &Model) -> Option<Started> {
        let mut programs = self.lock();
        let program = programs
            .known
            .iter_mut()
            .find(|program| program.model == *model)?;
        let ready = program
            .waiting
            .iter()
            .position(|started| has_spoken(&started.control));
        (!program.waiting.is_empty()).then(|| program.waiting.remove(ready.unwrap_or(0)))
    }

    /// Takes a waiting process that is not in a control group yet.
    pub(super) fn take_to_enter(&self) -> Option<(Model, Started)> {
        let mut programs = self.lock();
        programs.known.iter_mut().find_map(|program| {
            let place = program
                .waiting
                .iter()
                .position(|started| !started.was_to_enter)?;
            Some((program.model.clone(), program.waiting.remove(place)))
        })
    }

    /// Returns how many more processes of this program should wait.
    pub(super) fn lacking(&self, model: &Model) -> usize {
        let programs = self.lock();
        let most = programs.expected.map_or(self.most, |expected| {
            usize::try_from(expected)
                .unwrap_or(usize::MAX)
                .min(self.most)
        });
        match programs
            .known
            .iter()
            .find(|program| program.model == *model)
        {
            Some(program) if program.is_unfit => 0,
            Some(program) => most.saturating_sub(program.waiting.len()),
            None => most,
        }
    }

    /// Adds a started process, or records that the program cannot be prestarted. Returns the processes
    /// evicted for it.
    pub(super) fn put(&self, model: Model, started: Option<Started>) -> Vec<Started> {
        let mut programs = self.lock();
        let is_unfit = started.is_none();
        if let Some(program) = programs
            .known
            .iter_mut()
            .find(|program| program.model == model)
        {
            program.waiting.extend(started);
            program.is_unfit |= is_unfit;
            return Vec::new();
        }
        let waiting = Vec::from_iter(started);
        programs.known.push(Program {
            model,
            waiting,
            asked: Instant::now(),
            is_unfit,
        });
        if programs.known.len() <= PROGRAMS_MAX {
            return Vec::new();
        }
        let oldest = programs
            .known
            .iter()
            .enumerate()
            .min_by_key(|(_, program)| program.asked);
        let oldest = oldest.map_or(0, |(place, _)| place);
        programs.known.remove(oldest).waiting
    }

    /// Stops prestarting this program; returns its waiting processes.
    pub(super) fn give_up(&self, model: &Model) -> Vec<Started> {
        let mut programs = self.lock();
        let program = programs
            .known
            .iter_mut()
            .find(|program| program.model == *model);
        program.map_or_else(Vec::new, |program| {
            program.is_unfit = true;
            std::mem::take(&mut program.waiting)
        })
    }

    /// Returns the processes whose idle time is over.
    pub(super) fn retire(&self, now: Instant) -> Vec<Started> {
        let mut programs = self.lock();
        let old = |program: &mut Program| now.duration_since(program.asked) >= KEPT_FOR;
        programs
            .known
            .extract_if(.., old)
            .flat_map(|program| program.waiting)
            .collect()
    }

    /// Returns whether more processes of this program may be requested.
    pub(super) fn are_wanted(&self, model: &Model) -> bool {
        self.lock()
            .known
            .iter()
            .any(|program| program.model == *model && !program.is_unfit)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().known.is_empty()
    }
}

/// Returns whether the channel is readable. If that is its end, the attempt detects it.
fn has_spoken(control: impl AsFd) -> bool {
    recv(control, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT).is_ok()
}

/// Assigns a process that has sent `Hello` to an attempt. Fails if it has ended or is unusable.
pub(super) fn give_outfit(process: &ChildProcess, launch: &Launch) -> io::Result<()> {
    let control = process.control.as_fd();
    let (_, seen) = recv(control, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
    if seen == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let variables = launch.variables.iter().map(|(name, value)| OutfitVariable {
        name: (*name).to_owned(),
        value: value.clone().map(std::os::unix::ffi::OsStringExt::into_vec),
    });
    let outfit = Outfit {
        variables: variables.collect(),
        directory: launch.directory.clone(),
    };
    let message = encode(&ToTask::Outfit(outfit)).map_err(io::Error::other)?;
    let output = launch.output.iter();
    let files: Vec<BorrowedFd<'_>> = output
        .flat_map(|output| [output.stdout.as_fd(), output.stderr.as_fd()])
        .collect();
    send_with_descriptors(control, &message, &files)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::process::Pid;

    use super::super::child::Own;
    use super::super::control_groups::ControlGroups;
    use super::*;

    fn model(name: &str) -> Model {
        let program = Executable {
            path: name.into(),
            name: name.into(),
        };
        Model {
            program: Some(program),
            environment: None,
            is_silent: true,
            prints_to_files: false,
        }
    }

    /// An idle process and the other end of its channel.
    #[allow(clippy::zombie_processes, reason = "what it becomes reaps it")]
    fn sleeping(own: &Own) -> (Started, UnixStream) {
        let (control, theirs) = UnixStream::pair().expect("a channel");
        let child = Command::new("sleep")
            .arg("600")
            .process_group(0)
            .spawn()
            .expect("sleep");
        (
            Started::begin(
                Pid::from_child(&child),
                control,
                vec![String::from("A=1")],
                own,
            )
            .expect("watched"),
            theirs,
        )
    }

    #[test]
    fn prestarts_match_expected_requests() {
        for (most, expected, waiting, lacking) in [
            (2, None, 0, 2),
            (2, None, 1, 1),
            (2, None, 2, 0),
            (2, Some(5), 0, 2),
            (2, Some(1), 0, 1),
            (2, Some(1), 1, 0),
            (4, Some(0), 0, 0),
            (0, None, 0, 0),
        ] {
            let own = Own::default();
            let prestarts = Prestarts::new(most, expected);
            for _ in 0..waiting {
                assert!(prestarts.put(model("a"), Some(sleeping(&own).0)).is_empty());
            }
            let case = format!("{most} at most, {expected:?} expected, {waiting} waiting");
            assert_eq!(prestarts.lacking(&model("a")), lacking, "{case}");
            drop(prestarts);
            assert!(own.numbers().is_empty(), "{case}: all are ended");
        }
    }

    #[test]
    fn expected_requests_shrink_with_each_request() {
        let prestarts = Prestarts::new(4, Some(2));
        for lacking in [2, 1, 0, 0] {
            assert_eq!(prestarts.lacking(&model("a")), lacking);
            prestarts.expect_one_less(&model("a"));
        }
    }

    #[test]
    fn ready_process_is_taken_before_older_silent_one() {
        let own = Own::default();
        let prestarts = Prestarts::new(2, None);
        let (silent, _kept) = sleeping(&own);
        let (ready, mut theirs) = sleeping(&own);
        io::Write::write_all(&mut theirs, b"hello").expect("written");
        for started in [silent, ready] {
            prestarts.put(model("a"), Some(started));
        }
        let taken = || {
            prestarts
                .take(&model("a"))
                .is_some_and(|started| has_spoken(&started.control))
        };
        assert_eq!([taken(), taken()], [true, false]);
        assert!(prestarts.take(&model("a")).is_none(), "both are taken");
    }

    #[test]
    fn waiting_process_enters_group_once() {
        let Ok(groups) = ControlGroups::create() else {
            eprintln!("skipped: no control groups can be made here");
            return;
        };
        let own = Own::default();
        let prestarts = Prestarts::new(2, None);
        for name in ["a", "b"] {
            prestarts.put(model(name), Some(sleeping(&own).0));
        }
        for name in ["a", "b"] {
            let (of, mut started) = prestarts.take_to_enter().expect("one that waits");
            assert_eq!(of, model(name));
            started.enter(&groups);
            prestarts.put(of, Some(started));
        }
        assert!(prestarts.take_to_enter().is_none(), "both were");
        drop(prestarts);
        assert!(
            own.numbers().is_empty(),
            "they are ended as those in no group"
        );
    }

    #[test]
    fn processes_of_idle_program_are_retired() {
        let own = Own::default();
        let prestarts = Prestarts::new(2, None);
        let began = Instant::now();
        prestarts.put(model("a"), Some(sleeping(&own).0));
        assert!(
            prestarts.retire(began).is_empty(),
            "it was started a moment ago"
        );
        assert_eq!(prestarts.retire(Instant::now() + KEPT_FOR).len(), 1);
        assert!(prestarts.is_empty());
        assert!(own.numbers().is_empty(), "what is given back is ended");
    }

    #[test]
    fn least_recently_requested_program_is_evicted() {
        let own = Own::default();
        let prestarts = Prestarts::new(2, None);
        let names = ["a", "b", "c", "d"];
        for name in names {
            assert!(
                prestarts
                    .put(model(name), Some(sleeping(&own).0))
                    .is_empty()
            );
        }
        prestarts.expect_one_less(&model("a"));
        assert_eq!(prestarts.put(model("e"), Some(sleeping(&own).0)).len(), 1);
        let left = ["a", "b", "c", "d", "e"].map(|name| prestarts.take(&model(name)).is_some());
        assert_eq!(
            left,
            [true, false, true, true, true],
            "b was asked for longest ago"
        );
    }

    #[test]
    fn unfit_program_is_not_prestarted_again() {
        let own = Own::default();
        let prestarts = Prestarts::new(2, None);
        prestarts.put(model("a"), Some(sleeping(&own).0));
        assert_eq!(prestarts.give_up(&model("a")).len(), 1);
        assert_eq!(
            (
                prestarts.lacking(&model("a")),
                prestarts.lacking(&model("b"))
            ),
            (0, 2)
        );
        prestarts.put(model("b"), None);
        assert_eq!(prestarts.lacking(&model("b")), 0);
    }
}
