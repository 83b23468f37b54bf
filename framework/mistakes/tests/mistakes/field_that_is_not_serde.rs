//! Derives a state with a field whose type derives nothing.
//! The expected error is in the `.stderr` file.
use napreduce::Resumable;

#[derive(Clone, Default)]
struct Session {
    visits: u64,
}

#[derive(Resumable, Clone, Default)]
struct Sessions {
    open: Vec<Session>,
    last: Session,
    closed: u64,
}

fn main() {
    let _ = Sessions::default().save_state(&mut Vec::new());
}
