//! The event log: one line per event with its time, followed by an indented line per effect. Equal seeds and
//! inputs give equal bytes.

use std::io::{self, Write};

use napreduce_engine::{Effect, Event, Record, Report, Time};

/// The log of a run.
pub(super) struct Log {
    to: Box<dyn Write>,
}

impl Log {
    pub fn new(to: Box<dyn Write>) -> Log {
        Log { to }
    }

    /// Writes the events of a batch.
    pub fn events(&mut self, now: Time, events: &[Event]) -> io::Result<()> {
        for event in events {
            write!(self.to, "{now} ")?;
            match event {
                Event::WorkerJoined { worker, slots, .. } => {
                    writeln!(
                        self.to,
                        "{worker} joined with {} map and {} reduce slots",
                        slots.map, slots.reduce
                    )
                }
                Event::WorkerLost { worker, .. } => writeln!(self.to, "{worker} lost"),
                Event::JobSubmitted { job, spec } => writeln!(
                    self.to,
                    "{job} {} submitted by {} to {} with {} maps and {} reduces",
                    spec.name,
                    spec.user,
                    spec.queue,
                    spec.maps.len(),
                    spec.reduces
                ),
                Event::Reported {
                    worker,
                    attempt,
                    report,
                } => {
                    writeln!(self.to, "{attempt} on {worker} {}", describe(report))
                }
                Event::Woken => writeln!(self.to, "woken"),
                other => writeln!(self.to, "{other:?}"),
            }?;
        }
        Ok(())
    }

    /// Writes the effects that follow them.
    pub fn effects(&mut self, effects: &[Effect]) -> io::Result<()> {
        for effect in effects {
            match effect {
                Effect::Send { worker, order } => writeln!(self.to, "  {worker}: {}", order),
                Effect::WakeAt(time) => writeln!(self.to, "  wake at {time}"),
                Effect::JobEnded { job, outcome } => {
                    writeln!(self.to, "  {job} ended: {outcome:?}")
                }
                Effect::Warn { message } => writeln!(self.to, "  warning: {message}"),
                Effect::Record(Record::TaskDone(attempt)) => {
                    writeln!(self.to, "  {} done by {attempt}", attempt.task)
                }
                Effect::Record(Record::OutputLost(task)) => {
                    writeln!(self.to, "  output of {task} lost")
                }
                Effect::Record(Record::AttemptEnded(attempt, why)) => {
                    writeln!(self.to, "  {attempt} ended: {why}")
                }
                Effect::Record(Record::PreemptRequested {
                    attempt,
                    primitive,
                    beneficiary,
                    reason,
                    ..
                }) => {
                    let whom = beneficiary.map_or_else(String::new, |job| format!(" for {job}"));
                    writeln!(
                        self.to,
                        "  preempt {attempt} by {primitive}{whom}: {reason}"
                    )
                }
                Effect::Record(Record::PreemptWithdrawn { attempt, reason }) => {
                    writeln!(self.to, "  do not preempt {attempt}: {reason}")
                }
                Effect::Record(Record::Converted {
                    attempt,
                    primitive,
                    reason,
                    ..
                }) => {
                    writeln!(self.to, "  convert {attempt} by {primitive}: {reason}")
                }
                Effect::Record(_) => Ok(()),
                other => writeln!(self.to, "  {other:?}"),
            }?;
        }
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn describe(report: &Report) -> String {
    match report {
        Report::Started => "started".to_owned(),
        Report::Progressed {
            bytes_done,
            bytes_total,
        } => format!("progressed {bytes_done}/{bytes_total}"),
        Report::CommitRequested => "requests the commit".to_owned(),
        Report::Failed { reason, .. } => format!("failed: {reason}"),
        Report::Killed => "killed".to_owned(),
        Report::Suspended => "suspended".to_owned(),
        Report::SuspendedAtWork => "suspended at work".to_owned(),
        Report::SuspendRefused { reason } => format!("cannot be suspended: {reason}"),
        Report::Resumed => "resumed".to_owned(),
        Report::Checkpointed => "checkpointed".to_owned(),
        Report::InputsLost { reason, .. } => format!("lost inputs: {reason}"),
        Report::OutputMoved => "output moved".to_owned(),
        Report::Done { .. } => "done".to_owned(),
    }
}
