//! `nap top`: a full-screen view of a cluster.
//!
//! One thread reads keys and one asks the coordinator; both send events to the main thread, which alone changes
//! the [`Model`](model::Model) and draws it. A slow or lost coordinator therefore never delays a key.

mod draw;
mod fetch;
mod model;
#[cfg(test)]
mod tests;

use std::io::{IsTerminal, stdin, stdout};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use napreduce_protocol::several_lines;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event as TerminalEvent, KeyEvent, KeyEventKind};
use signal_hook::iterator::Signals;

use crate::cluster::ClusterArguments;
use crate::failure::{Failure, usage};
use crate::signals::ending_signals;
use fetch::Fetcher;
use model::{Effect, Model, Snapshot};

/// Interval at which the threads are checked if nothing happens.
const LOOK: Duration = Duration::from_secs(1);
/// Added to the number of a signal for the exit status.
const BY_SIGNAL: i32 = 128;

/// Show jobs, workers and queues full-screen, and act on jobs
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap top
  nap --dir /srv/nap top

Keys: up and down select, Enter explains, s suspends, r resumes, h holds,
u releases, x kills, p sets the priority, Tab shows workers and queues,
/ filters, ? lists all keys, q quits. Without a terminal use: nap status")]
pub struct Arguments {}

/// An event that the main thread waits for.
pub enum Event {
    Key(KeyEvent),
    Resized,
    Fetched(Box<Snapshot>),
    /// The coordinator does not answer, with the reason.
    Lost(String),
    /// The answer to an order.
    Ordered(Result<String, String>),
    Signal(i32),
    /// The terminal cannot be read.
    NoKeys(std::io::Error),
}

pub fn run(cluster: &ClusterArguments) -> Result<()> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(usage(anyhow!(
            "nap top needs a terminal; without one use: nap status"
        )));
    }
    let fetcher = Fetcher::connect(cluster)?;
    let mut terminal = ratatui::try_init().context("cannot use the terminal")?;
    let ended = watch(fetcher, &mut terminal);
    // If the terminal is gone, `ratatui::restore` and dropping the handle would print that, and so panic.
    drop(ratatui::try_restore());
    std::mem::forget(terminal);
    ended
}

/// Draws until the user quits.
fn watch(fetcher: Fetcher, terminal: &mut DefaultTerminal) -> Result<()> {
    let (events, arrived) = channel();
    let (asks, asked) = channel();
    let sender = events.clone();
    thread::spawn(move || read_keys(&sender));
    let mut signals = ending_signals()
        .and_then(Signals::new)
        .context("cannot handle signals")?;
    let sender = events.clone();
    thread::spawn(move || {
        signals
            .forever()
            .try_for_each(|signal| sender.send(Event::Signal(signal)))
    });
    let fetching = thread::spawn(move || fetcher.run(&asked, &events));
    let mut model = Model::default();
    loop {
        terminal
            .draw(|frame| draw::draw(&model, frame))
            .context("cannot draw")?;
        match arrived.recv_timeout(LOOK) {
            Ok(Event::Key(key)) => match model.press(key) {
                Some(Effect::Quit) => return Ok(()),
                Some(Effect::Ask(ask)) => asks.send(ask).context("nothing asks the coordinator")?,
                None => {}
            },
            Ok(Event::Fetched(snapshot)) => model.fetched(*snapshot),
            Ok(Event::Lost(why)) => model.lost(several_lines(&why)),
            Ok(Event::Ordered(answer)) => model.ordered(answer),
            Ok(Event::Signal(signal)) => {
                return Err(Failure::Printed(u8::try_from(BY_SIGNAL + signal).unwrap_or(1)).into());
            }
            Ok(Event::NoKeys(error)) => return Err(error).context("cannot read the terminal"),
            Ok(Event::Resized) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("nothing reads the terminal"),
        }
        // It has printed its panic, after restoring the terminal.
        if fetching.is_finished() {
            return Err(Failure::Printed(1).into());
        }
    }
}

fn read_keys(events: &Sender<Event>) {
    loop {
        let event = match event::read() {
            Ok(TerminalEvent::Key(key)) if key.kind != KeyEventKind::Release => Event::Key(key),
            Ok(TerminalEvent::Resize(..)) => Event::Resized,
            Ok(_) => continue,
            Err(error) => Event::NoKeys(error),
        };
        let is_last = matches!(event, Event::NoKeys(_));
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}
