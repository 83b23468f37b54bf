//! The display of progress on standard error: bars on a terminal, plain lines elsewhere, nothing if disabled.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use napreduce_engine::TaskKind;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{JobProgress, PhaseProgress};

use super::line::phase_text;

/// A shorter job shows no progress by default.
const QUIET_START: Duration = Duration::from_secs(1);
/// Minimum interval between plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);
const BAR_COLUMNS: usize = 10;
/// Columns of a line without the name of its phase, and of a message without name and bar: 80 in all.
const LINE_COLUMNS: usize = 73;
const MESSAGE_COLUMNS: usize = 60;

/// When progress is shown on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProgressMode {
    /// Bars on a terminal, otherwise plain lines about every 2 s; nothing for a job of less than a second.
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
    quiet_start: Duration,
    phases: Vec<ShownPhase>,
}

enum Form {
    Nothing,
    Lines {
        last: Option<Instant>,
    },
    /// Number of drawn lines above the cursor.
    Bars {
        drawn: usize,
    },
}

struct ShownPhase {
    kind: TaskKind,
    began: Instant,
    finished: bool,
    /// On a terminal, once shown.
    bar: Option<String>,
}

impl ProgressDisplay {
    /// `quiet` overrides `mode`.
    pub fn new(mode: ProgressMode, quiet: bool) -> ProgressDisplay {
        let form = match mode {
            ProgressMode::Never => Form::Nothing,
            _ if quiet => Form::Nothing,
            _ if stderr().is_terminal() => Form::Bars { drawn: 0 },
            _ => Form::Lines { last: None },
        };
        let quiet_start = match mode {
            ProgressMode::Always => Duration::ZERO,
            _ => QUIET_START,
        };
        ProgressDisplay { form, began: Instant::now(), quiet_start, phases: Vec::new() }
    }

    /// Shows the progress of the job.
    pub fn show(&mut self, progress: &JobProgress) {
        let now = Instant::now();
        for (kind, phase) in progress.phases().filter(|(_, phase)| phase.has_begun()) {
            if !self.phases.iter().any(|shown| shown.kind == kind) {
                self.phases.push(ShownPhase { kind, began: now, finished: false, bar: None });
            }
            if now.duration_since(self.began) >= self.quiet_start {
                self.show_phase(kind, &phase, now);
            }
        }
        self.draw_bars();
    }

    fn show_phase(&mut self, kind: TaskKind, phase: &PhaseProgress, now: Instant) {
        let Some(shown) = self.phases.iter_mut().find(|shown| shown.kind == kind && !shown.finished) else {
            return;
        };
        let text = |columns| phase_text(phase, now.duration_since(shown.began), columns);
        match &mut self.form {
            Form::Nothing => {}
            Form::Lines { last } => {
                let recently = last.is_some_and(|last| now.duration_since(last) < PLAIN_INTERVAL);
                if phase.is_done() || !recently {
                    print_error(format_args!("{:<6} {}", kind.to_string(), text(LINE_COLUMNS)));
                    *last = Some(now);
                }
            }
            Form::Bars { .. } => shown.bar = Some(bar(kind, phase, &text(MESSAGE_COLUMNS))),
        }
        shown.finished = phase.is_done();
    }

    /// Draws the bars over the previous ones.
    fn draw_bars(&mut self) {
        let Form::Bars { drawn } = &mut self.form else { return };
        let size = rustix::termios::tcgetwinsize(stderr());
        // Some terminals do not report their size.
        let columns = size.map_or(0, |size| usize::from(size.ws_col));
        let columns = if columns == 0 { 80 } else { columns };
        let bars: Vec<&str> = self.phases.iter().filter_map(|shown| shown.bar.as_deref()).collect();
        // A failed write to the terminal is ignored.
        let _ = stderr().lock().write_all(frame(&bars, *drawn, columns).as_bytes());
        *drawn = bars.len();
    }

    /// Leaves the bars in place with the cursor below them.
    pub fn end(&mut self) {
        self.form = Form::Nothing;
    }
}

/// Returns the line of a phase, such as `map    [===>      ]  33% 1/3 tasks, 1 running`.
fn bar(kind: TaskKind, phase: &PhaseProgress, text: &str) -> String {
    let done = BAR_COLUMNS * phase.percent() as usize / 100;
    let head = if done < BAR_COLUMNS { ">" } else { "" };
    format!("{:<6} [{:<BAR_COLUMNS$}] {text}", kind.to_string(), "=".repeat(done) + head)
}

/// Returns the text that redraws these lines over `drawn` earlier ones, each cut to the width of the
/// terminal: a wrapped line could not be overwritten.
fn frame(lines: &[&str], drawn: usize, columns: usize) -> String {
    let mut text = if drawn > 0 { format!("\x1b[{drawn}A") } else { String::new() };
    for line in lines {
        let line: String = line.chars().take(columns).collect();
        text.push_str(&format!("\r\x1b[K{line}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fit_80_columns() {
        let phase = PhaseProgress {
            tasks: 100_000,
            running: 4096,
            suspended: 4096,
            bytes_done: 1 << 40,
            bytes_total: 2 << 40,
            ..PhaseProgress::default()
        };
        for done in [1, 50_000, 100_000] {
            let phase = PhaseProgress { done, ..phase };
            let text = phase_text(&phase, Duration::from_secs(10), MESSAGE_COLUMNS);
            for kind in [TaskKind::Map, TaskKind::Reduce] {
                let line = bar(kind, &phase, &text);
                assert!(line.chars().count() <= 80 && line.contains(" tasks"), "{line:?}");
            }
        }
    }

    #[test]
    fn bar_grows_with_the_percentage() {
        let drawn =
            |done| bar(TaskKind::Map, &PhaseProgress { tasks: 2, done, ..PhaseProgress::default() }, "text");
        assert_eq!(drawn(0), "map    [>         ] text");
        assert_eq!(drawn(1), "map    [=====>    ] text");
        assert_eq!(drawn(2), "map    [==========] text");
    }

    #[test]
    fn frame_overwrites_last_one_within_terminal_width() {
        assert_eq!(frame(&["map"], 0, 80), "\r\x1b[Kmap\n");
        assert_eq!(frame(&["map", "reduce"], 1, 3), "\x1b[1A\r\x1b[Kmap\n\r\x1b[Kred\n");
        assert_eq!(frame(&[], 0, 80), "");
    }
}
