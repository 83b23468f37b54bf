//! Finds the sessions in a log of visits: `sessions INPUT... --output DIR`; a line of the log is `USER,SECOND`.
//!
//! Owns when a session ends, and what is saved of it when a task is checkpointed among the visits of one user. Does not
//! own when that happens.

use std::process::ExitCode;

use napreduce::output::Text;
use napreduce::{Emit, Job, Output, Program, Reducer, Save, TaskError, Value, Values};

/// Seconds without a visit after which a session has ended.
const PAUSE: u64 = 30 * 60;
type Visits<'v> = Values<'v, (String, u64), ()>;
/// First second, last second, and how many visits.
type Session = (u64, u64, u64);

/// The session that has not ended yet.
#[derive(Clone, Default)]
struct Sessions(Option<Session>);

impl Reducer for Sessions {
    type Group = String;
    type Key = (String, u64);
    type Value = ();
    type Output = Text;

    fn reduce(&mut self, user: &str, visits: &mut Visits, out: &mut Output<Text>) -> Result<(), TaskError> {
        let mut end = |(first, last, visits): Session| out.emit((user, first), (last - first, visits));
        while let Some(((_, second), ())) = visits.next_entry() {
            if let Some(ended) = self.0.take_if(|(_, last, _)| second - *last > PAUSE) {
                end(ended);
            }
            let (first, _, visits) = self.0.unwrap_or((second, second, 0));
            self.0 = Some((first, second, visits + 1));
        }
        // A group that is cut goes on, perhaps in another process.
        if !visits.is_cut() {
            self.0.take().map(end);
        }
        Ok(())
    }

    fn resumes_in_group(&self) -> bool {
        true
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        Option::<Session>::encode_owned(&self.0, true, state);
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.0 =
            Option::<Session>::decode_owned(state).map_err(|error| TaskError::task(error.to_string()))?;
        Ok(())
    }
}

/// Groups the visits of each user, by time; taken into a test, too, which preempts it everywhere.
pub fn sessions(_: &()) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<(String, u64), ()>| {
            let visit = line.split_once(',').and_then(|(user, second)| Some((user, second.parse().ok()?)));
            visit.map(|visit| out.emit(visit, ())).ok_or_else(|| format!("expected USER,SECOND: {line:?}"))
        })
        .group_by::<String>()
        .reducer(Sessions::default())
}

fn main() -> ExitCode {
    Program::new()
        .about("Finds the sessions in a log of visits, from lines USER,SECOND")
        .examples("sessions visits.csv --output sessions")
        .main(sessions)
}
