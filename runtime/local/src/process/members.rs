//! The descendants of a task process in its group, and whether they still run.

use std::time::{Duration, Instant};

use napreduce_task::{children_of, state_of};
use rustix::process::Pid;

/// Polling interval. The kernel reports stops to the parent only, and that is the task process, which is
/// stopped itself.
const LOOK: Duration = Duration::from_millis(1);

/// Waits until every descendant of a stopped process in its group has stopped, at most `patience`; returns
/// how many still run. Returns 0 if the kernel does not list children.
pub async fn await_stopped_members(leader: Pid, patience: Duration) -> usize {
    let began = Instant::now();
    loop {
        let running = running_members(leader.as_raw_nonzero().get());
        if running == 0 || began.elapsed() >= patience {
            return running;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn running_members(leader: i32) -> usize {
    members(leader).into_iter().filter(|member| !stands_still(member.state, &member.children)).count()
}

/// A descendant of the leader of a process group that is in that group.
pub(super) struct Member {
    pub(super) process: i32,
    state: char,
    children: Vec<i32>,
}

/// Returns the descendants of a process in the group that it leads; empty if the kernel does not list
/// children.
pub(super) fn members(leader: i32) -> Vec<Member> {
    let (mut members, mut waiting, mut seen) = (Vec::new(), children_of(leader), 0);
    while let Some(process) = waiting.pop() {
        // Limits the search: a process can keep starting others.
        seen += 1;
        if seen > 10_000 {
            break;
        }
        if let Some((state, group)) = state_of(process) {
            let children = children_of(process);
            waiting.extend(&children);
            if group == leader {
                members.push(Member { process, state, children });
            }
        }
    }
    members
}

/// Returns whether a process is stopped, traced or ended; or waits for a child stopped between `vfork` and
/// `exec`, as shells start commands: it cannot stop before the child continues, and is idle until then.
fn stands_still(state: char, children: &[i32]) -> bool {
    let is_stopped = |child: &i32| matches!(state_of(*child), Some(('T' | 't', _)));
    matches!(state, 'T' | 't' | 'Z' | 'X') || (state == 'D' && children.iter().any(is_stopped))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use rustix::process::{Signal, kill_process, kill_process_group};

    use super::*;

    /// Starts a shell in its own group that runs a script; returns it with a function that awaits a line of
    /// its output.
    fn shell(script: &str) -> (Child, Pid, impl FnMut()) {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).process_group(0).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        let mut output = BufReader::new(shell.stdout.take().expect("its output"));
        let leader = Pid::from_child(&shell);
        let await_line = move || {
            let mut line = String::new();
            assert!(output.read_line(&mut line).expect("a line") > 0, "it has ended");
        };
        (shell, leader, await_line)
    }

    /// A shell that only starts commands is often stopped between `vfork` and `exec`.
    #[tokio::test]
    async fn shell_stopped_in_vfork_counts_as_stopped() {
        let script = "sh -c 'while :; do /bin/true; /bin/true; /bin/true; echo again; done' & wait";
        let (mut shell, leader, mut await_line) = shell(script);
        for round in 0..100 {
            await_line();
            kill_process_group(leader, Signal::STOP).expect("stopped");
            let running = await_stopped_members(leader, Duration::from_secs(10)).await;
            assert_eq!(running, 0, "round {round}");
            kill_process_group(leader, Signal::CONT).expect("the signal is sent");
        }
        kill_process_group(leader, Signal::KILL).expect("killed");
        shell.wait().expect("reaped");
    }

    #[tokio::test]
    async fn children_are_stopped_with_their_group_only() {
        let (mut shell, leader, mut await_line) = shell("sleep 1000 & echo started; wait");
        await_line();
        kill_process(leader, Signal::STOP).expect("stopped");
        assert_eq!(await_stopped_members(leader, Duration::ZERO).await, 1, "only the shell was stopped");
        kill_process_group(leader, Signal::STOP).expect("stopped");
        assert_eq!(await_stopped_members(leader, Duration::from_secs(60)).await, 0);
        kill_process_group(leader, Signal::KILL).expect("killed");
        shell.wait().expect("reaped");
    }
}
