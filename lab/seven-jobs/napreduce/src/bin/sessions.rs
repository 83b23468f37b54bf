use napreduce::builder::BadRecord;
use napreduce::{Emit, Job};

const PAUSE_SECONDS: u64 = 30 * 60;

/// Sessions from lines VISITOR SECONDS PAGE: visitor, start, length and pages.
fn sessions() -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<(String, u64), ()>| -> Result<(), BadRecord> {
            let [visitor, seconds, _] = line.split(' ').collect::<Vec<_>>()[..] else {
                return Err(BadRecord::new("expected VISITOR SECONDS PAGE"));
            };
            out.emit((visitor, seconds.parse()?), ());
            Ok(())
        })
        .group_by::<String>()
        .reduce(|visitor, visits, out| {
            let mut session: Option<(u64, u64, u64)> = None;
            while let Some(((_, at), ())) = visits.next_entry() {
                if let Some((start, end, pages)) = session.take_if(|(_, end, _)| at - *end > PAUSE_SECONDS) {
                    out.emit(visitor, (start, end - start, pages));
                }
                let (start, _, pages) = session.unwrap_or((at, at, 0));
                session = Some((start, at, pages + 1));
            }
            if let Some((start, end, pages)) = session {
                out.emit(visitor, (start, end - start, pages));
            }
        })
}

fn main() -> std::process::ExitCode {
    napreduce::main(sessions)
}
