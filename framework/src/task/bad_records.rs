//! Records that a map can make nothing of: they fail the job, or are left out and counted.
//!
//! Owns the count, the limit and what is told of the first one. Does not own what makes a record bad: the map
//! says so with an error that is fatal and the input's fault.

use napreduce_core::{FailureClass, FaultPlace};
use napreduce_live::{TaskError, counter};

use crate::input::{BadRows, InputPlace};

/// Records that are left out, in the report of a job.
const COUNTER: &str = "BAD_RECORDS";

/// Lets a bad record pass uncounted into what the map makes, or gives its error back, as it does with all
/// others. The count is that of the task, and goes on after a checkpoint.
#[cold]
pub(crate) fn pass(error: TaskError, choice: BadRows, place: Option<&InputPlace>) -> Result<(), TaskError> {
    if (error.class, error.place) != (FailureClass::Fatal, FaultPlace::Input) {
        return Err(error);
    }
    let counter = counter(COUNTER);
    let before = counter.get();
    match choice {
        BadRows::Fail => return Err(error),
        BadRows::AtMost(most) if before >= most => {
            let message = format!(
                "{}; that is one more bad record than the {most} that may be left out: mend them, or pass --bad-records \
                 with more",
                error.message
            );
            return Err(TaskError { message, ..error });
        }
        BadRows::AtMost(_) | BadRows::Skip => {}
    }
    if before == 0 {
        let place = place.map_or_else(String::new, InputPlace::to_string);
        eprintln!("{place}: left out a bad record: {}; others are only counted, as {COUNTER}", error.message);
    }
    counter.add(1);
    Ok(())
}
