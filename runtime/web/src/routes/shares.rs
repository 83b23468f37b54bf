//! The handler for slots of queues over time.

use napreduce_answers::{SharesSum, Steps};
use napreduce_protocol::JobSummary;

use super::call::{Call, Reply};
use super::window::query_window;
use crate::clock::now_millis;
use crate::per_job::{READ_TIME, Window};
use crate::problem::Problem;

/// Default length of a window of a running cluster; of a history, the default is all of it.
const WINDOW_MILLIS: u64 = 10 * 60_000;
/// Default number of steps.
const STEPS: u64 = 120;
const STEPS_MAX: u64 = 1_000;

pub fn shares(call: &Call<'_>) -> Result<Reply, Problem> {
    let source = &call.shown.source;
    let all = source.jobs()?;
    let length = if source.is_live() {
        WINDOW_MILLIS
    } else {
        u64::MAX
    };
    let window = within(query_window(call, length)?, &all, source.is_live());
    let step = call.query_value::<u64>("step")?;
    if step == Some(0) {
        return Err(Problem::invalid(
            "step is 0; expected 1 or more milliseconds",
        ));
    }
    let step_millis = step
        .unwrap_or_else(|| (window.until - window.from).div_ceil(STEPS))
        .max(1);
    let steps = Steps {
        from_millis: window.from,
        until_millis: window.until,
        step_millis,
    };
    if steps.count() > STEPS_MAX {
        let count = steps.count();
        return Err(Problem::invalid(format!(
            "step={step_millis} gives {count} steps; at most {STEPS_MAX}"
        )));
    }
    let mut sum = SharesSum::new(steps);
    let left_out = call
        .shown
        .slots
        .each(READ_TIME, &**source, &all, window, |job, slots| {
            sum.add(&job.queue, &slots)
        })?;
    let mut shares = sum.answer(left_out.jobs, left_out.remarks);
    let noted = source.window(window.from, window.until)?;
    shares.note(&noted.queues);
    shares.remarks.extend(noted.remarks);
    shares.remarks.extend(source.remarks());
    Reply::json(&shares)
}

/// Clips a window to the time from the first submission until now, or until the end of a history.
fn within(window: Window, jobs: &[JobSummary], is_live: bool) -> Window {
    let ends = || {
        jobs.iter()
            .map(|job| job.ended_millis.unwrap_or_else(now_millis))
            .max()
    };
    let last = if is_live {
        now_millis()
    } else {
        ends().unwrap_or(window.until)
    };
    let first = jobs
        .iter()
        .map(|job| job.submitted_millis)
        .min()
        .unwrap_or(window.until);
    let until = window.until.min(last).max(window.from);
    Window {
        from: window.from.max(first).min(until),
        until,
    }
}
