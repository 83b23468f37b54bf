//! The display of a job's progress on standard error, such as
//! `12 s: maps 45% 18/40, reduces 0% 0/4, 2 running, 256.0 MiB/s, 1 min 2 s left`: one line that is
//! redrawn on a terminal, plain lines elsewhere, nothing if disabled.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use napreduce_engine::TaskKind;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{JobProgress, PhaseProgress};

/// A shorter job shows no progress by default.
const QUIET_START: Duration = Duration::from_secs(1);
/// Minimum interval between plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);
/// Minimum time for a meaningful rate.
const RATE_AFTER: Duration = Duration::from_millis(100);
/// The width of plain lines, and of terminals that do not report theirs.
const COLUMNS: usize = 80;

/// When progress is shown on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProgressMode {
    /// A line on a terminal, otherwise one about every 2 s; nothing for a job of less than a second.
    #[default]
    Auto,
    /// Like `Auto`, but from the start of the job.
    Always,
    /// Never.
    Never,
}

/// Shows the progress of one job.
pub struct ProgressDisplay {
    form: Form,
    began: Instant,
    /// Time from the submission of the job until the display began.
    elapsed_before: Duration,
    quiet_start: Duration,
    /// When progress was first reported, and the bytes that were done by then.
    first: Option<(Instant, u64)>,
    /// The number of phases whose end was shown.
    finished: usize,
}

enum Form {
    Nothing,
    Lines {
        last: Option<Instant>,
    },
    /// A line above the cursor, if it is drawn.
    Redrawn {
        is_drawn: bool,
    },
}

impl ProgressDisplay {
    /// `quiet` overrides `mode`; `elapsed_before` is the time since the submission.
    pub fn new(mode: ProgressMode, quiet: bool, elapsed_before: Duration) -> ProgressDisplay {
        let form = match mode {
            ProgressMode::Never => Form::Nothing,
            _ if quiet => Form::Nothing,
            _ if stderr().is_terminal() => Form::Redrawn { is_drawn: false },
            _ => Form::Lines { last: None },
        };
        let quiet_start = match mode {
            ProgressMode::Always => Duration::ZERO,
            _ => QUIET_START,
        };
        ProgressDisplay {
            form,
            began: Instant::now(),
            elapsed_before,
            quiet_start,
            first: None,
            finished: 0,
        }
    }

    /// Shows the progress of the job.
    pub fn show(&mut self, progress: &JobProgress) {
        let now = Instant::now();
        let bytes = bytes_done(progress);
        let (since, before) = *self.first.get_or_insert((now, bytes));
        let elapsed = self.elapsed_before + now.duration_since(self.began);
        if elapsed < self.quiet_start || !progress.phases().any(|(_, phase)| phase.has_begun()) {
            return;
        }
        let rate = bytes_per_second(bytes.saturating_sub(before), now.duration_since(since));
        let finished = progress
            .phases()
            .filter(|(_, phase)| phase.is_done())
            .count();
        match &mut self.form {
            Form::Nothing => {}
            Form::Lines { last } => {
                let is_due = last.is_none_or(|last| now.duration_since(last) >= PLAIN_INTERVAL);
                let is_over = self.finished == progress.phases().count();
                if finished > self.finished || (is_due && !is_over) {
                    print_error(line(progress, elapsed, rate, COLUMNS));
                    *last = Some(now);
                }
            }
            Form::Redrawn { is_drawn } => {
                let size = rustix::termios::tcgetwinsize(stderr()).ok();
                let columns = size
                    .map(|size| usize::from(size.ws_col))
                    .filter(|columns| *columns > 0);
                let columns = columns.unwrap_or(COLUMNS);
                let frame = frame(&line(progress, elapsed, rate, columns), *is_drawn, columns);
                // A failed write to the terminal is ignored.
                let _ = stderr().lock().write_all(frame.as_bytes());
                *is_drawn = true;
            }
        }
        self.finished = finished;
    }

    /// Leaves the line in place with the cursor below it.
    pub fn end(&mut self) {
        self.form = Form::Nothing;
    }
}

/// Returns the text that draws a line, over the last one if there is one. It is cut to the width of the terminal:
/// a wrapped line could not be overwritten.
fn frame(line: &str, is_drawn: bool, columns: usize) -> String {
    let up = if is_drawn { "\x1b[1A" } else { "" };
    let line: String = line.chars().take(columns).collect();
    format!("{up}\r\x1b[K{line}\n")
}

/// Returns the line of a job. Omits the least important parts if it exceeds `columns`.
fn line(progress: &JobProgress, elapsed: Duration, rate: Option<u64>, columns: usize) -> String {
    let sum =
        |of: fn(&PhaseProgress) -> u32| progress.phases().map(|(_, phase)| of(&phase)).sum::<u32>();
    let suspended = sum(|phase| phase.suspended);
    let checkpointed = sum(|phase| phase.checkpointed);
    let left = progress
        .left
        .map(|left| Duration::from_micros(left.likely.as_micros()));
    // Each part has a rank; the highest rank is omitted first.
    let mut parts: Vec<(u8, String)> = progress
        .phases()
        .map(|(kind, phase)| (0, phase_text(kind, phase)))
        .collect();
    parts.push((4, format!("{} running", sum(|phase| phase.running))));
    parts.extend((suspended > 0).then(|| (2, format!("{suspended} suspended"))));
    parts.extend((checkpointed > 0).then(|| (2, format!("{checkpointed} checkpointed"))));
    parts.extend(rate.map(|rate| (3, format!("{}/s", bytes_text(rate)))));
    parts.extend(left.map(|left| (1, format!("{} left", time_text(left)))));
    loop {
        let all = parts
            .iter()
            .map(|(_, part)| part.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        let text = format!("{}: {all}", time_text(elapsed));
        let least = (0..parts.len())
            .filter(|at| parts[*at].0 > 0)
            .max_by_key(|at| parts[*at].0);
        match least.filter(|_| text.len() > columns) {
            Some(least) => {
                parts.remove(least);
            }
            None => return text,
        }
    }
}

/// Formats a phase: its share by bytes if they are known, and its tasks.
fn phase_text(kind: TaskKind, phase: PhaseProgress) -> String {
    format!(
        "{kind}s {}% {}/{}",
        phase.percent(),
        phase.done,
        phase.tasks
    )
}

fn bytes_done(progress: &JobProgress) -> u64 {
    progress
        .map
        .bytes_done
        .saturating_add(progress.reduce.bytes_done)
}

fn bytes_per_second(bytes: u64, elapsed: Duration) -> Option<u64> {
    if bytes == 0 || elapsed < RATE_AFTER {
        return None;
    }
    u64::try_from(u128::from(bytes) * 1_000_000 / elapsed.as_micros()).ok()
}

/// Formats bytes in the largest binary unit in which the value is at least 1.
fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Formats a time in seconds, minutes and seconds, or hours and minutes.
fn time_text(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_millis() >= 500);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{Span, TimeLeft};

    use super::*;

    fn job(map: PhaseProgress, reduces: u32, left: Option<u64>) -> JobProgress {
        let span = left.map(Span::from_secs);
        JobProgress {
            map,
            reduce: PhaseProgress {
                tasks: reduces,
                ..PhaseProgress::default()
            },
            left: span.map(|likely| TimeLeft {
                least: likely,
                likely,
                most: likely,
            }),
        }
    }

    #[test]
    fn job_is_shown_on_one_line() {
        let map = PhaseProgress {
            tasks: 40,
            done: 18,
            running: 2,
            bytes_done: 512 << 20,
            bytes_total: 1024 << 20,
            ..PhaseProgress::default()
        };
        assert_eq!(
            line(
                &job(map, 4, Some(62)),
                Duration::from_secs(12),
                Some(256 << 20),
                80
            ),
            "12 s: maps 50% 18/40, reduces 0% 0/4, 2 running, 256.0 MiB/s, 1 min 2 s left"
        );
    }

    #[test]
    fn progress_without_bytes_counts_tasks() {
        let map = PhaseProgress {
            tasks: 4,
            done: 1,
            ..PhaseProgress::default()
        };
        assert_eq!(
            line(&job(map, 0, None), Duration::from_secs(2), None, 80),
            "2 s: maps 25% 1/4, 0 running"
        );
    }

    #[test]
    fn long_line_leaves_out_attempts_first_and_never_tasks() {
        let map = PhaseProgress {
            tasks: 100_000,
            done: 99_999,
            running: 4096,
            suspended: 4096,
            checkpointed: 4096,
            bytes_done: 1023 << 40,
            bytes_total: 1024 << 40,
        };
        let text = |columns| {
            line(
                &job(map, 1_000, Some(3_519)),
                Duration::from_secs(7_260),
                Some(298 << 20),
                columns,
            )
        };
        assert_eq!(
            text(200),
            "2 h 1 min: maps 99% 99999/100000, reduces 0% 0/1000, 4096 running, 4096 suspended, 4096 checkpointed, \
             298.0 MiB/s, 58 min 39 s left"
        );
        assert_eq!(
            text(90),
            "2 h 1 min: maps 99% 99999/100000, reduces 0% 0/1000, 4096 suspended, 58 min 39 s left"
        );
        for columns in 53..130 {
            assert!(text(columns).len() <= columns, "{}", text(columns));
            assert!(
                text(columns).contains("99999/100000, reduces 0% 0/1000"),
                "{}",
                text(columns)
            );
        }
    }

    #[test]
    fn rate_needs_bytes_and_time() {
        let second = Duration::from_secs(1);
        let moment = Duration::from_millis(99);
        assert_eq!(bytes_per_second(10, second * 2), Some(5));
        assert_eq!(
            (bytes_per_second(0, second), bytes_per_second(10, moment)),
            (None, None)
        );
    }

    #[test]
    fn phase_with_all_bytes_read_is_not_complete() {
        let mut phase = PhaseProgress {
            tasks: 2,
            done: 1,
            bytes_done: 10,
            bytes_total: 10,
            ..PhaseProgress::default()
        };
        assert_eq!(phase.percent(), 99);
        phase.done = 2;
        assert_eq!(phase.percent(), 100);
    }

    #[test]
    fn frame_overwrites_last_one_within_terminal_width() {
        assert_eq!(frame("maps", false, 80), "\r\x1b[Kmaps\n");
        assert_eq!(frame("reduces", true, 3), "\x1b[1A\r\x1b[Kred\n");
    }

    #[test]
    fn sizes_and_times_are_readable() {
        assert_eq!(bytes_text(1023), "1023 B");
        assert_eq!(bytes_text(1536), "1.5 KiB");
        assert_eq!(bytes_text(u64::MAX), "16384.0 PiB");
        assert_eq!(time_text(Duration::from_millis(1600)), "2 s");
        assert_eq!(time_text(Duration::from_secs(61)), "1 min 1 s");
        assert_eq!(time_text(Duration::from_secs(7260)), "2 h 1 min");
    }
}
