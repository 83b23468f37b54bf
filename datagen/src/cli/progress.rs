//! Progress on standard error during a long call: nothing in the first second, then a bar on a terminal and
//! lines elsewhere.

use super::print_error;
use datagen::Watch;
use indicatif::{DecimalBytes, ProgressBar, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Calls shorter than this show nothing.
const SILENCE: Duration = Duration::from_secs(1);
const BAR_INTERVAL: Duration = Duration::from_millis(100);
const LINE_INTERVAL: Duration = Duration::from_secs(5);

const BAR_TEMPLATE: &str = "{msg} {percent:>3}% {wide_bar} {decimal_bytes} of {decimal_total_bytes}, \
                            {decimal_bytes_per_sec}, {eta} left";

/// Runs `work` and shows the progress of `watch`, unless `quiet`.
pub(crate) fn show_while<T>(
    verb: &'static str,
    watch: &Watch,
    quiet: bool,
    work: impl FnOnce() -> T,
) -> T {
    if quiet {
        return work();
    }
    thread::scope(|scope| {
        // Dropping the sender, when the work returns or panics, wakes and ends the display at once.
        let (_working, done) = mpsc::channel::<()>();
        scope.spawn(move || show(verb, watch, &done));
        work()
    })
}

fn show(verb: &'static str, watch: &Watch, done: &Receiver<()>) {
    let started = Instant::now();
    if done.recv_timeout(SILENCE) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    // The total is known once a generator has built its tables or the validator has listed its files.
    while watch.total() == 0 {
        if done.recv_timeout(BAR_INTERVAL) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
    if stderr().is_terminal() {
        let bar = ProgressBar::new(watch.total())
            .with_message(verb)
            .with_elapsed(started.elapsed());
        bar.set_style(
            ProgressStyle::with_template(BAR_TEMPLATE).expect("the template is a valid constant"),
        );
        loop {
            bar.set_position(watch.done());
            if done.recv_timeout(BAR_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
        bar.finish_and_clear();
    } else {
        loop {
            print_error(line(verb, watch.done(), watch.total(), started.elapsed()));
            if done.recv_timeout(LINE_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
    }
}

/// Formats a progress line: percentage, throughput and time left.
fn line(verb: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let percent = 100.0 * done as f64 / total as f64;
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    let left = if done == 0 {
        "unknown time".to_owned()
    } else {
        format!("{:.0} s", total.saturating_sub(done) as f64 / rate)
    };
    format!(
        "{verb} {percent:.0}% of {}, {}/s, {left} left",
        DecimalBytes(total),
        DecimalBytes(rate as u64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_shows_percentage_rate_and_time_left() {
        let text = line(
            "writing",
            3_000_000_000,
            10_000_000_000,
            Duration::from_secs(3),
        );
        assert_eq!(text, "writing 30% of 10.00 GB, 1.00 GB/s, 7 s left");
        let text = line("writing", 0, 10_000_000_000, Duration::from_secs(3));
        assert_eq!(text, "writing 0% of 10.00 GB, 0 B/s, unknown time left");
    }

    #[test]
    fn bar_template_is_valid() {
        assert!(ProgressStyle::with_template(BAR_TEMPLATE).is_ok());
    }

    #[test]
    fn show_while_returns_the_result() {
        assert_eq!(show_while("testing", &Watch::default(), false, || 7), 7);
    }
}
