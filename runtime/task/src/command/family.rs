//! A command and its descendants: processes that are asked to stop one by one, so that their parent is not
//! stopped.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::descendants::{Descendant, descendants_of};
use crate::proc::{age_of, bytes_of};

/// Minimum age of a child of the command that gets SIGTSTP. A younger one may be a copy of its parent that is about
/// to call `exec`: it seems to handle the signal as its parent does, but would be stopped by it, and a shell waiting
/// for it would never run its own handler.
const ASKED_AGE_MIN: Duration = Duration::from_secs(1);

/// A child of this process, not reaped, and its descendants.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    first: Pid,
}

impl Family {
    pub fn new(child: Pid) -> Family {
        Family { first: child }
    }

    /// Sends SIGTSTP to processes that handle it; returns their process IDs. For the others it would equal the stop
    /// that follows, and one stopped too early may keep its parent from running its handler.
    pub fn ask_to_stop(self) -> Vec<i32> {
        self.ask_aged(ASKED_AGE_MIN)
    }

    /// Asks the first process, and descendants of this age.
    fn ask_aged(self, least: Duration) -> Vec<i32> {
        let first = self.first.as_raw_nonzero().get();
        let has_age = |member| member == first || age_of(member).is_some_and(|age| age >= least);
        self.signal_if(Signal::TSTP, |member, _| {
            has_age(member) && handles_stop_requests(member)
        })
    }

    /// Sends SIGCONT to stopped processes; returns whether there were any.
    pub fn continue_stopped(self) -> bool {
        !self
            .signal_if(Signal::CONT, |_, state| state == 'T')
            .is_empty()
    }

    /// Returns whether one of the processes asked to stop has not stopped itself yet.
    pub fn is_getting_ready(self, asked: &[i32]) -> bool {
        let runs = |(member, state)| {
            state != 'T' && asked.contains(&member) && handles_stop_requests(member)
        };
        self.members().into_iter().any(runs)
    }

    /// Returns the highest peak resident memory of a process, in bytes.
    pub fn peak_bytes(self) -> u64 {
        let peak = |(member, _): (i32, char)| {
            let status = fs::read_to_string(format!("/proc/{member}/status")).ok()?;
            bytes_of(&status, "VmHWM:")
        };
        self.members()
            .into_iter()
            .filter_map(peak)
            .max()
            .unwrap_or(0)
    }

    /// Kills the processes.
    pub fn kill(self) {
        self.signal_if(Signal::KILL, |_, _| true);
    }

    /// Sends a signal to the processes wanted; returns those that got it.
    fn signal_if(self, signal: Signal, wanted: impl Fn(i32, char) -> bool) -> Vec<i32> {
        let mut signalled = Vec::new();
        for member in self.processes() {
            let Some(state) = member.state() else {
                continue;
            };
            if wanted(member.process, state) && member.signal(signal) {
                signalled.push(member.process);
            }
        }
        signalled
    }

    /// Returns the process ids and states, without ended processes.
    fn members(self) -> Vec<(i32, char)> {
        let state = |member: Descendant| Some((member.process, member.state()?));
        self.processes().into_iter().filter_map(state).collect()
    }

    fn processes(self) -> Vec<Descendant> {
        let first = self.first.as_raw_nonzero().get();
        let mut all: Vec<Descendant> = Descendant::find(first).into_iter().collect();
        all.retain(|first| !matches!(first.state(), Some('Z' | 'X')));
        all.extend(descendants_of(first).members);
        all
    }
}

/// Returns whether it has a handler for SIGTSTP, as reported by the kernel.
fn handles_stop_requests(process: i32) -> bool {
    fs::read_to_string(format!("/proc/{process}/status")).is_ok_and(|status| catches(&status))
}

fn catches(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    mask >> (libc::SIGTSTP - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::proc::children_of;

    /// A shell that prints a line when it is set up. It is in the group of this test, like a task's command in
    /// the task's.
    struct Shell(Child);

    impl Shell {
        fn run(script: &str) -> Shell {
            let mut child = Command::new("sh")
                .args(["-c", script])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a shell");
            let mut printed = String::new();
            let mut output = BufReader::new(child.stdout.take().expect("its output"));
            output.read_line(&mut printed).expect("a line");
            Shell(child)
        }

        fn process(&self) -> i32 {
            i32::try_from(self.0.id()).expect("a process ID")
        }

        fn family(&self) -> Family {
            Family::new(Pid::from_child(&self.0))
        }

        fn until(&self, what: &str, is_so: impl Fn(Vec<char>) -> bool) {
            let began = Instant::now();
            while !is_so(
                self.family()
                    .members()
                    .into_iter()
                    .map(|(_, state)| state)
                    .collect(),
            ) {
                assert!(
                    began.elapsed() < Duration::from_secs(60),
                    "{what}: {:?}",
                    self.family().members()
                );
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            self.family().kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn handled_signals_are_parsed() {
        assert!(catches("Name:\tsh\nSigCgt:\t0000000000080000\nx"));
        assert!(!catches(
            "SigIgn:\t0000000000080000\nSigCgt:\t0000000000040000\n"
        ));
        assert!(!catches(""));
    }

    #[test]
    fn stopped_command_and_children_are_continued() {
        let shell = Shell::run("sleep 1000 & echo started; wait");
        shell.until("two run", |states| states.len() == 2);
        assert!(!shell.family().continue_stopped(), "none is stopped");
        shell.family().signal_if(Signal::STOP, |_, _| true);
        shell.until("two are stopped", |states| states == ['T', 'T']);
        assert!(shell.family().continue_stopped());
        shell.until("none is stopped", |states| {
            states.len() == 2 && !states.contains(&'T')
        });
    }

    #[test]
    fn process_handling_stop_request_is_awaited_until_it_stops() {
        let shell = Shell::run("trap 'kill -STOP $$' TSTP; echo set; while :; do sleep 0.01; done");
        let asked = shell.family().ask_to_stop();
        assert_eq!(asked, [shell.process()]);
        shell.until("it is stopped", |states| states.contains(&'T'));
        assert!(!shell.family().is_getting_ready(&asked));
    }

    #[test]
    fn process_without_handler_gets_no_stop_request() {
        for script in ["trap '' TSTP; echo set; sleep 1000", "echo set; sleep 1000"] {
            let shell = Shell::run(script);
            assert!(shell.family().ask_to_stop().is_empty(), "{script}");
        }
    }

    #[test]
    fn child_gets_stop_request_from_an_age_on() {
        // It starts no program, so that it has no copies.
        let set = "trap 'exit 7' TSTP; echo set; while :; do :; done";
        let shell = Shell::run(&format!("sh -c \"{set}\" & wait"));
        let child = children_of(shell.process())[0];
        assert!(
            shell.family().ask_aged(Duration::MAX).is_empty(),
            "it is too young"
        );
        assert_eq!(shell.family().ask_aged(Duration::ZERO), [child]);
    }
}
