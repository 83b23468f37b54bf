//! Where progress appears: bars on a terminal, plain lines elsewhere, nothing when nobody wants it.
//!
//! Owns standard error while a job runs, and the rules of when something is shown. Does not own the numbers.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use napreduce_core::TaskKind;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{JobProgress, PhaseProgress};

use super::line::phase_text;

/// A job shorter than this shows nothing unless asked to.
const QUIET_START: Duration = Duration::from_secs(1);
/// Plain lines come no more often than this.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);
const BAR_STEPS: u64 = 100;

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
pub(crate) struct ProgressDisplay {
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
    pub(crate) fn new(mode: ProgressMode, quiet: bool) -> ProgressDisplay {
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
    pub(crate) fn show(&mut self, progress: &JobProgress) {
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
        let text = || phase_text(phase, now.duration_since(shown.began));
        match &mut self.form {
            Form::Nothing => {}
            Form::Lines { last } => {
                let recently = last.is_some_and(|last| now.duration_since(last) < PLAIN_INTERVAL);
                if phase.is_done() || !recently {
                    print_error(format_args!("{:<6} {}", kind.to_string(), text()));
                    *last = Some(now);
                }
            }
            Form::Bars(bars) => {
                let text = text();
                let bar = shown.bar.get_or_insert_with(|| bars.add(new_bar(kind)));
                bar.set_position(u64::from(phase.percent()));
                bar.set_message(text);
            }
        }
        shown.finished = phase.is_done();
        if let Some(bar) = shown.bar.as_ref().filter(|_| shown.finished) {
            bar.abandon();
        }
    }

    /// Leaves bars as they are and the cursor below them.
    pub(crate) fn end(&mut self) {
        for bar in self.phases.iter().filter_map(|shown| shown.bar.as_ref()) {
            bar.abandon();
        }
        self.form = Form::Nothing;
    }
}

fn new_bar(kind: TaskKind) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:<6} [{bar:20}] {msg}")
        .expect("the template is a constant that indicatif accepts");
    let bar = ProgressBar::new(BAR_STEPS).with_style(style.progress_chars("=> "));
    bar.set_prefix(kind.to_string());
    bar
}
