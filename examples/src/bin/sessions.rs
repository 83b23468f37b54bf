//! Finds the sessions in a log of visits: `sessions INPUT... --output DIR`; a line of the log is
//! `USER,SECOND`.
//!
//! The reducer saves the current session, so a task can be checkpointed among the visits of one user.

use napreduce::{Emit, Job, Program};

/// Seconds without a visit after which a session has ended.
const PAUSE: u64 = 30 * 60;
/// First second, last second, number of visits.
type Session = (u64, u64, u64);

/// Groups the visits of each user by time. `tests/examples/preemption.rs` includes this job.
pub fn sessions() -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<(String, u64), ()>| {
            let visit = line
                .split_once(',')
                .and_then(|(user, second)| Some((user, second.parse().ok()?)));
            visit
                .map(|visit| out.emit(visit, ()))
                .ok_or_else(|| format!("expected USER,SECOND: {line:?}"))
        })
        .group_by::<String>()
        // The state is the current session.
        .reduce_resumable(None, |open: &mut Option<Session>, user, visits, out| {
            let mut end =
                |(first, last, visits): Session| out.emit((user, first), (last - first, visits));
            while let Some(((_, second), ())) = visits.next_entry() {
                if let Some(ended) = open.take_if(|(_, last, _)| second - *last > PAUSE) {
                    end(ended);
                }
                let (first, _, visits) = open.unwrap_or((second, second, 0));
                *open = Some((first, second, visits + 1));
            }
            // The rest of a cut group follows, perhaps in another process.
            if !visits.is_cut() {
                open.take().map(end);
            }
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Finds the sessions in a log of visits, from lines USER,SECOND")
        .examples("sessions visits.csv --output sessions")
        .main(sessions)
}
