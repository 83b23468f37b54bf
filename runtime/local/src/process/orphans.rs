//! Orphans of tasks outside their process groups: a daemon adopts them and kills them after their attempt.
//! Not for user programs, whose children belong to the user.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use std::{fs, io};

use napreduce_task::{children_of, state_of};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

/// Time for a killed process to end, unless it is blocked on a disk; the next sweep finds it then.
const PATIENCE: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(1);

/// Makes this process the parent of orphaned descendants.
pub(super) fn adopt() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Kills and reaps children that have one of these marks and are not in `own`. Orphans of running attempts are
/// reaped only after their end. Must run on the thread that starts processes, so that none starts meanwhile.
pub(super) fn sweep(own: &BTreeSet<i32>, marks: &[String]) {
    let strangers =
        children_of(getpid().as_raw_nonzero().get()).into_iter().filter(|child| !own.contains(child));
    for child in strangers {
        let Some(process) = Pid::from_raw(child) else { continue };
        let has_ended = state_of(child).is_some_and(|(state, _)| state == 'Z');
        if !has_ended && !is_marked(child, marks) {
            continue;
        }
        // A child that is not reaped keeps its process id; an error means that it has ended.
        let _ = kill_process(process, Signal::KILL);
        reap(process);
    }
}

fn is_marked(process: i32, marks: &[String]) -> bool {
    let variables = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let mut variables = variables.split(|byte| *byte == 0);
    variables.any(|variable| marks.iter().any(|mark| variable == mark.as_bytes()))
}

fn reap(process: Pid) {
    let began = Instant::now();
    while matches!(waitpid(Some(process), WaitOptions::NOHANG), Ok(None)) && began.elapsed() < PATIENCE {
        std::thread::sleep(LOOK);
    }
}
