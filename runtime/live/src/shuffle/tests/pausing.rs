//! A reduce that is suspended while it waits for its inputs: connections are closed, and nothing is
//! lost or blamed.
//!
//! Owns the pause of fetches. Does not own the stopping of a process.

use std::sync::atomic::{AtomicBool, Ordering};

use napreduce_protocol::{FromTask, WireError};
use napreduce_task::Supervisor;

use super::*;

/// Without an end to them, a machine with much else to do would never come to fetch anything.
const SUSPENDS_MAX: u32 = 100;

struct Ear(Sender<FromTask>);

impl Supervisor for Ear {
    fn tell(&self, message: &FromTask) -> Result<(), WireError> {
        self.0.send(message.clone()).map_err(|_| WireError::CutShort)
    }

    fn catch_up(&self) {}
}

/// Suspends a reduce again and again until it has gathered everything; how often.
fn suspend_while_gathering(encrypt: bool) -> u32 {
    let served = Served::start().with_maps(40, 2_000);
    let mut reduce = Reduce::new(40).encrypted(encrypt);
    let (told, heard) = channel();
    reduce.context.gate().attach(Box::new(Ear(told)));
    let (context, arrived) = (Arc::clone(&reduce.context), reduce.arrived.clone());
    let over_now = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&over_now);
    let suspending = std::thread::spawn(move || {
        for epoch in 1..=SUSPENDS_MAX {
            context.gate().suspend(epoch, false);
            // The gathering may be over by now, and then nobody comes to the gate.
            arrived.send(InputEvent::Asked).unwrap();
            loop {
                match heard.recv_timeout(Duration::from_millis(10)) {
                    Ok(message) => break assert_eq!(message, FromTask::Ready { epoch }),
                    Err(_) if over.load(Ordering::SeqCst) => return epoch - 1,
                    Err(_) => {}
                }
            }
            assert!(!context.gate().resume(epoch));
            assert_eq!(heard.recv_timeout(PATIENCE), Ok(FromTask::Resumed { epoch }));
        }
        SUSPENDS_MAX
    });
    let gathered = reduce.gather(served.inputs(40));
    over_now.store(true, Ordering::SeqCst);
    let suspends = suspending.join().unwrap();
    check_equal(&gathered, &served.shelf, 0);
    assert_eq!(reduce.count(Counter::ShuffleRetries), 0, "a pause is no failure of a peer");
    suspends
}

#[test]
fn a_suspended_gathering_goes_on_where_it_was() {
    let suspends = suspend_while_gathering(false) + suspend_while_gathering(true);
    println!("{suspends} suspends");
    assert!(suspends > 0, "it was never suspended");
}
