//! Stops, continues and kills a task process with all its descendants, and verifies that all are stopped.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use napreduce_protocol::lock;
use napreduce_task::{Descendant, Descendants, descendants_of};
use rustix::process::{Pid, Signal, kill_process_group};

use super::orphans::kill_tree;

/// Polling interval. The kernel reports stops to the parent only, and that is the task process, which is
/// stopped itself.
const LOOK: Duration = Duration::from_millis(1);

/// A task process that is not reaped, the leader of its process group, and its descendants.
#[derive(Debug)]
pub(super) struct Family {
    leader: Pid,
    /// Descendants that were stopped before the present suspension; it does not continue them.
    stopped_before: Mutex<BTreeSet<Descendant>>,
}

impl Family {
    pub(super) fn new(leader: Pid) -> Family {
        Family {
            leader,
            stopped_before: Mutex::default(),
        }
    }

    /// Records the descendants that are stopped already: by the command itself, since nothing was signalled yet.
    pub(super) fn note_stopped(&self) {
        let stopped = self
            .scan()
            .members
            .into_iter()
            .filter(|member| member.is_stopped());
        *self.stopped_before() = stopped.collect();
    }

    /// Sends SIGSTOP to all.
    pub(super) fn stop(&self) {
        self.signal_group(Signal::STOP);
        for member in self.scan().members {
            member.signal(Signal::STOP);
        }
    }

    /// Waits until every thread of every descendant of the stopped leader is stopped, at most `patience`.
    /// Descendants that were forked meanwhile are stopped, too. Returns what still runs.
    pub(super) async fn await_stop(&self, patience: Duration) -> Option<String> {
        let began = Instant::now();
        let mut seen_still: Option<Vec<Descendant>> = None;
        loop {
            let Descendants { members, is_cut } = self.scan();
            let running = members.iter().find(|member| !member.stands_still());
            // A scan while processes run may miss some.
            if running.is_none()
                && !is_cut
                && (members.is_empty() || seen_still.as_ref() == Some(&members))
            {
                return None;
            }
            if began.elapsed() >= patience {
                return Some(match running {
                    Some(running) => {
                        format!("{} did not stop within {patience:?}", running.describe())
                    }
                    None => format!("its processes did not come to rest within {patience:?}"),
                });
            }
            if running.is_some() {
                for member in members.iter().filter(|member| !member.is_stopped()) {
                    member.signal(Signal::STOP);
                }
                seen_still = None;
                tokio::time::sleep(LOOK).await;
            } else {
                seen_still = Some(members);
            }
        }
    }

    /// Returns whether the leader and its descendants stand still.
    pub(super) fn stands_still(&self) -> bool {
        self.leader_is_stopped()
            && self
                .scan()
                .members
                .into_iter()
                .all(Descendant::stands_still)
    }

    /// Returns whether the leader lives and every thread of it stands still.
    pub(super) fn leader_is_stopped(&self) -> bool {
        let lives = |leader: &Descendant| !matches!(leader.state(), None | Some('Z' | 'X'));
        Descendant::find(self.leader_id())
            .filter(lives)
            .is_some_and(Descendant::stands_still)
    }

    /// Continues all but those that were stopped before the suspension. The leader comes last, so that it finds its
    /// commands running.
    pub(super) fn resume(&self) {
        let stopped_before = std::mem::take(&mut *self.stopped_before());
        let members = self.scan().members;
        for member in members
            .iter()
            .filter(|member| !stopped_before.contains(member))
        {
            member.signal(Signal::CONT);
        }
        if let Some(leader) = Descendant::find(self.leader_id()) {
            leader.signal(Signal::CONT);
        }
    }

    /// Kills all.
    pub(super) fn kill(&self) {
        self.signal_group(Signal::STOP);
        kill_tree(self.leader_id());
        self.signal_group(Signal::KILL);
    }

    fn signal_group(&self, signal: Signal) {
        // The leader is not reaped, so the group id is not reused; an error means that the group is empty.
        let _ = kill_process_group(self.leader, signal);
    }

    fn scan(&self) -> Descendants {
        descendants_of(self.leader_id())
    }

    fn leader_id(&self) -> i32 {
        self.leader.as_raw_nonzero().get()
    }

    /// Locks the set; no panic can leave it half-changed.
    fn stopped_before(&self) -> MutexGuard<'_, BTreeSet<Descendant>> {
        lock(&self.stopped_before)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Child, ChildStdout, Command, Stdio};

    use rustix::process::kill_process;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A shell in a process group of its own that runs a script; it is killed with its descendants.
    struct Shell {
        child: Child,
        family: Family,
        output: BufReader<ChildStdout>,
    }

    impl Shell {
        fn run(script: &str) -> Shell {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", script])
                .process_group(0)
                .stdout(Stdio::piped());
            let mut child = shell.spawn().expect("a shell");
            let output = BufReader::new(child.stdout.take().expect("its output"));
            let family = Family::new(Pid::from_child(&child));
            Shell {
                child,
                family,
                output,
            }
        }

        fn line(&mut self) -> String {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).expect("a line") > 0,
                "it has ended"
            );
            line.trim_end().to_owned()
        }

        async fn suspend(&self) {
            self.family.note_stopped();
            self.family.stop();
            let began = Instant::now();
            while !self.family.leader_is_stopped() {
                assert!(began.elapsed() < PATIENCE, "the leader does not stop");
                tokio::task::yield_now().await;
            }
            assert_eq!(self.family.await_stop(PATIENCE).await, None);
            assert!(self.family.stands_still());
        }

        fn states(&self) -> Vec<char> {
            self.family
                .scan()
                .members
                .into_iter()
                .filter_map(Descendant::state)
                .collect()
        }

        fn until(&self, what: &str, is_so: impl Fn(&[char]) -> bool) {
            let began = Instant::now();
            while !is_so(&self.states()) {
                assert!(began.elapsed() < PATIENCE, "{what}: {:?}", self.states());
                std::thread::yield_now();
            }
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            self.family.kill();
            let _ = self.child.wait();
        }
    }

    /// A shell that only starts commands is often stopped between `vfork` and `exec`.
    #[tokio::test]
    async fn shell_stopped_in_vfork_counts_as_stopped() {
        let script = "sh -c 'while :; do /bin/true; /bin/true; /bin/true; echo again; done' & wait";
        let mut shell = Shell::run(script);
        for _ in 0..100 {
            shell.line();
            shell.suspend().await;
            shell.family.resume();
        }
    }

    #[tokio::test]
    async fn processes_of_other_groups_and_sessions_are_stopped_and_continued() {
        for script in [
            "timeout 1000 sleep 1000 & echo started; wait",
            "setsid -w sleep 1000 & echo started; wait",
            "set -m; sleep 1000 & echo started; wait",
            "setsid -w env -i sh -c 'sleep 1000; :' & echo started; wait",
        ] {
            let mut shell = Shell::run(script);
            shell.line();
            shell.until("a command in another group", |states| {
                !states.is_empty() && !states.contains(&'R')
            });
            shell.suspend().await;
            let states = shell.states();
            assert!(
                !states.is_empty() && states.iter().all(|state| *state == 'T'),
                "{script}: {states:?}"
            );
            shell.family.resume();
            shell.until("the end of the stop", |states| !states.contains(&'T'));
        }
    }

    /// Each child starts the next one in a session of its own and ends.
    #[tokio::test]
    async fn forks_during_the_stop_are_stopped() {
        let grow = "grow() { i=0; while [ $i -lt 40 ]; do setsid sleep 1000 & i=$((i+1)); done; echo grown; wait; }";
        for _ in 0..5 {
            let mut shell = Shell::run(&format!("{grow}; echo started; grow"));
            shell.line();
            shell.suspend().await;
            let stopped = shell.states().len();
            assert!(shell.family.stands_still());
            shell.family.resume();
            assert_eq!(shell.line(), "grown");
            shell.until("all of them", |states| {
                states.len() == 40 && states.len() >= stopped
            });
        }
    }

    #[tokio::test]
    async fn process_stopped_by_its_command_stays_stopped() {
        let mut shell = Shell::run("sleep 1000 & kill -STOP $!; sleep 1000 & echo started; wait");
        shell.line();
        shell.until("one stopped", |states| {
            states.iter().filter(|state| **state == 'T').count() == 1
        });
        shell.suspend().await;
        assert_eq!(shell.states(), ['T', 'T']);
        shell.family.resume();
        shell.until("one continued", |states| {
            states.iter().filter(|state| **state == 'T').count() == 1
        });
    }

    #[tokio::test]
    async fn process_that_does_not_stop_is_named() {
        let mut shell = Shell::run("sleep 1000 & echo started; wait");
        shell.line();
        // The leader alone is stopped, and there is no time for the others.
        kill_process(shell.family.leader, Signal::STOP).expect("stopped");
        let running = shell
            .family
            .await_stop(Duration::ZERO)
            .await
            .expect("it runs");
        assert!(running.contains(" in state "), "{running}");
        assert_eq!(
            shell.family.await_stop(PATIENCE).await,
            None,
            "it is stopped, too"
        );
    }

    #[test]
    fn killed_family_leaves_no_process_of_other_sessions() {
        let mut shell =
            Shell::run("setsid sh -c 'trap \"\" HUP TERM; sleep 1000; :' & echo started; wait");
        shell.line();
        shell.until("all of them", |states| states.len() == 2);
        let members = shell.family.scan().members;
        shell.family.kill();
        let began = Instant::now();
        while members
            .iter()
            .any(|member| !matches!(member.state(), None | Some('Z' | 'X')))
        {
            assert!(began.elapsed() < PATIENCE, "they live");
            std::thread::yield_now();
        }
    }
}
