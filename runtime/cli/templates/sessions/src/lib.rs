//! The job of this program. Its closures run in task processes, which execute the same program again.

use napreduce::{Emit, Job};

/// Seconds without a visit after which a session has ended.
const PAUSE: u64 = 30 * 60;

/// First second, last second, number of visits.
type Session = (u64, u64, u64);

/// Finds the sessions in a log of visits (USER,SECOND): first second, length and number of visits.
///
/// The state of the reduce is the open session. A checkpoint saves it, even between two visits.
pub fn sessions() -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<(String, u64), ()>| {
            visit(line).map(|(user, second)| out.emit((user, second), ()))
        })
        .group_by::<String>()
        .reduce_resumable(None, |open: &mut Option<Session>, user, visits, out| {
            let mut end = |(first, last, visits): Session| {
                out.emit((user, first), (last - first, visits));
            };
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

fn visit(line: &str) -> Result<(&str, u64), String> {
    let visit = line
        .split_once(',')
        .and_then(|(user, second)| Some((user, second.parse().ok()?)));
    visit.ok_or_else(|| format!("expected USER,SECOND, but found {line:?}"))
}
