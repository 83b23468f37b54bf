//! Records that a map reports as bad: they fail the job, or are skipped and counted. A map reports one with a
//! fatal error that blames the input.

use napreduce_engine::{FailureClass, FaultPlace};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{FailedRecord, TaskError};
use napreduce_task::counter;

use crate::input::{BAD_RECORDS, InputPlace, Skip, remedy, which};

/// Skips a bad record if the limit allows it, else returns its error; returns all other errors unchanged.
#[cold]
pub(crate) fn pass(
    error: TaskError,
    skip: Skip,
    place: Option<&InputPlace>,
) -> Result<(), TaskError> {
    if (error.class, error.place) != (FailureClass::Fatal, FaultPlace::Input) {
        return Err(error);
    }
    if let Err(most) = skip.check_one_more() {
        return Err(described(error, most, place));
    }
    let counter = counter(BAD_RECORDS);
    if counter.get() == 0 {
        let quote = quote(place);
        let place = place.map_or_else(String::new, InputPlace::to_string);
        print_error(format_args!(
            "{place}: skipped a bad record: {}{quote}; further ones are only counted, as {BAD_RECORDS}",
            error.message
        ));
    }
    counter.add(1);
    Ok(())
}

/// Adds to the error the position of the record, its text, and how to skip it.
fn described(error: TaskError, most: Option<u64>, place: Option<&InputPlace>) -> TaskError {
    let which = which("record", most);
    let remedy = remedy("record", most);
    let quote = quote(place);
    let record = place.and_then(|place| {
        let text = place.quote();
        Some(FailedRecord::new(
            place.path().display().to_string(),
            place.in_file()?,
            text.as_deref(),
        ))
    });
    let error = TaskError {
        record: record.map(Box::new).or(error.record),
        ..error
    };
    let located = place.and_then(|place| Some((place.path().display(), place.in_file()?)));
    match located.filter(|_| !error.is_located) {
        Some((path, place)) => {
            let message = format!(
                "{path} has {which} at {place}: {}{quote}; {remedy}",
                error.message
            );
            TaskError { message, ..error }.located()
        }
        // The format has put the position into its message.
        None => TaskError {
            message: format!("{which}: {} ({remedy})", error.message),
            ..error
        },
    }
}

fn quote(place: Option<&InputPlace>) -> String {
    let quote = place.and_then(InputPlace::quote);
    quote.map_or_else(String::new, |quote| {
        format!("; the record begins with {quote}")
    })
}
