use std::time::{Duration, Instant};

pub use napreduce_tests::Process;

/// Waits for a condition; a timeout is an error.
pub fn wait_until(
    what: &str,
    deadline: Duration,
    mut come: impl FnMut() -> bool,
) -> Result<(), String> {
    let began = Instant::now();
    while !come() {
        if began.elapsed() > deadline {
            return Err(format!("{what}: not within {deadline:?}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
