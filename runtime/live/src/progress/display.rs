//! Where progress appears: bars on a terminal, plain lines elsewhere, nothing when nobody wants it.
//!
//! Owns standard error while a job runs, and the rules of when something is shown. Does not own the numbers.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use napreduce_engine::TaskKind;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{JobProgress, PhaseProgress};

use super::line::phase_text;

/// A job shorter than this shows nothing unless asked to.
const QUIET_START: Duration = Duration::from_secs(1);
/// Plain lines come no more often than this.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);
const BAR_STEPS: u64 = 100;
/// Columns of a line beside the name of its phase, and of a message beside name and bar: 80 in all.
const LINE_COLUMNS: usize = 73;
const MESSAGE_COLUMNS: usize = 60;

/// When progress is shown on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProgressMode {
    /// Bars on a terminal, else plain lines every 2 s or so; nothing for a job of less than a second.
    #[default]
    Auto,
    /// As `Auto`, from the start of the job on.
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
    Lines { last: Option<Instant> },
    Bars(MultiProgress),
}

struct ShownPhase {
    kind: TaskKind,
    began: Instant,
    finished: bool,
    bar: Option<ProgressBar>,
}

impl ProgressDisplay {
    /// `quiet` wins over `mode`.
    pub fn new(mode: ProgressMode, quiet: bool) -> ProgressDisplay {
        let form = match mode {
            ProgressMode::Never => Form::Nothing,
            _ if quiet => Form::Nothing,
            _ if stderr().is_terminal() => {
                Form::Bars(MultiProgress::with_draw_target(ProgressDrawTarget::stderr()))
            }
            _ => Form::Lines { last: None },
        };
        let quiet_start = match mode {
            ProgressMode::Always => Duration::ZERO,
            _ => QUIET_START,
        };
        ProgressDisplay { form, began: Instant::now(), quiet_start, phases: Vec::new() }
    }

    /// Shows how far the job is now.
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
            Form::Bars(bars) => {
                let text = text(MESSAGE_COLUMNS);
                let bar = shown.bar.get_or_insert_with(|| bars.add(new_bar(kind)));
                bar.set_message(text);
                bar.set_position(u64::from(phase.percent()));
            }
        }
        shown.finished = phase.is_done();
        if let Some(bar) = shown.bar.as_ref().filter(|_| shown.finished) {
            bar.abandon();
        }
    }

    /// Leaves bars as they are and the cursor below them.
    pub fn end(&mut self) {
        for bar in self.phases.iter().filter_map(|shown| shown.bar.as_ref()) {
            bar.abandon();
        }
        self.form = Form::Nothing;
    }
}

fn new_bar(kind: TaskKind) -> ProgressBar {
    // Wider lines would wrap on a narrower terminal, and stay there.
    let style = ProgressStyle::with_template("{prefix:<6} [{bar:10}] {wide_msg}")
        .expect("the template is a constant that indicatif accepts");
    // Hidden until it is added to the other bars: else it would be drawn once for itself.
    let bar = ProgressBar::with_draw_target(Some(BAR_STEPS), ProgressDrawTarget::hidden());
    bar.with_style(style.progress_chars("=> ")).with_prefix(kind.to_string())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal of 80 columns that keeps the lines written to it.
    #[derive(Debug, Clone, Default)]
    struct Terminal(Arc<Mutex<Vec<String>>>);

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            let mut lines = self.0.lock().expect("nobody panicked");
            lines.extend(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned));
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn bars_fit_80_columns_and_are_never_drawn_empty() {
        let terminal = Terminal::default();
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        let form = Form::Bars(MultiProgress::with_draw_target(target));
        let (began, quiet_start) = (Instant::now(), Duration::ZERO);
        let mut display = ProgressDisplay { form, began, quiet_start, phases: Vec::new() };
        assert!(new_bar(TaskKind::Map).is_hidden(), "it would be drawn before it is added");
        let map = PhaseProgress {
            tasks: 100_000,
            running: 4096,
            suspended: 4096,
            bytes_done: 1 << 40,
            bytes_total: 2 << 40,
            ..PhaseProgress::default()
        };
        for done in [1, 50_000, 100_000] {
            let map = PhaseProgress { done, ..map };
            display.show(&JobProgress { map, reduce: PhaseProgress { tasks: 1, running: 1, ..map } });
        }
        display.end();
        let lines = terminal.0.lock().expect("nobody panicked").clone();
        assert!(
            lines.iter().any(|line| line.contains("map")) && lines.iter().any(|line| line.contains("reduce"))
        );
        for line in lines {
            assert!(line.chars().count() <= 80 && line.contains(" tasks"), "{line:?}");
        }
    }
}
