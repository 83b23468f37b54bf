//! Orphans of tasks outside their process groups: a daemon adopts them and kills them after their attempt.
//! Not for user programs, whose children belong to the user.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use std::{fs, io};

use napreduce_task::{Descendant, children_of, descendants_of, stat_of};
use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, waitpid};

/// Time for a killed process to end, unless it is blocked on a disk; the next sweep finds it then.
const PATIENCE: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(1);
/// Maximum scans for descendants of a process to be killed. Each stops what it found, so more are needed only while
/// a process that was not found yet keeps forking.
const SCANS_MAX: u32 = 100;

/// Makes this process the parent of orphaned descendants.
pub(super) fn adopt() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Kills and reaps children that have one of these marks and are not in `own`, and their descendants. Orphans of
/// running attempts are children of their tasks. Must run on the thread that starts processes, so that none starts meanwhile.
pub(super) fn sweep(own: &BTreeSet<i32>, marks: &[String]) {
    let strangers = children_of(getpid().as_raw_nonzero().get())
        .into_iter()
        .filter(|child| !own.contains(child));
    for child in strangers {
        let Some(process) = Pid::from_raw(child) else {
            continue;
        };
        let has_ended = stat_of(child).is_some_and(|stat| stat.state == 'Z');
        if !has_ended && !is_marked(child, marks) {
            continue;
        }
        kill_tree(child);
        reap(process);
    }
}

/// Kills a process and its descendants, which are stopped first, so that none starts another one meanwhile.
pub(super) fn kill_tree(process: i32) {
    let mut found = BTreeSet::from_iter(Descendant::find(process));
    for member in &found {
        member.signal(Signal::STOP);
    }
    for _ in 0..SCANS_MAX {
        let before = found.len();
        for member in descendants_of(process).members {
            if found.insert(member) {
                member.signal(Signal::STOP);
            }
        }
        if found.len() == before {
            break;
        }
    }
    for member in found {
        member.signal(Signal::KILL);
    }
}

fn is_marked(process: i32, marks: &[String]) -> bool {
    let variables = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let mut variables = variables.split(|byte| *byte == 0);
    variables.any(|variable| marks.iter().any(|mark| variable == mark.as_bytes()))
}

fn reap(process: Pid) {
    let began = Instant::now();
    while matches!(waitpid(Some(process), WaitOptions::NOHANG), Ok(None))
        && began.elapsed() < PATIENCE
    {
        std::thread::sleep(LOOK);
    }
}
