//! `nap up`: a whole cluster of daemons on this machine, in the foreground.
//!
//! Owns the order of starting and ending, and what becomes of daemons that die. Does not own the daemons,
//! which are `nap coordinator` and `nap worker` in processes of their own, nor these processes (`daemon`).

mod daemon;
mod readiness;
mod restarts;

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use daemon::{Daemon, Ended};
use napreduce_live::{ClusterPlace, OnTerminate};
use napreduce_protocol::printing::{print, print_error};
use readiness::Readiness;
use restarts::Restarts;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cluster::{ClusterArguments, Configuration, WebAddress};
use crate::web::Running;
use crate::worker::LeaveArguments;

const WORKERS_MAX: u32 = 1000;
const SLOTS_MAX: u32 = 4096;
/// How long daemons may take to end before they are killed.
const ENDING_MAX: Duration = Duration::from_secs(15);
/// How long until the end of a daemon is noticed whose output is held open by somebody else.
const LOOK: Duration = Duration::from_millis(500);

/// Run a cluster on this machine, in the foreground
///
/// A coordinator and workers, each in a process of its own; Ctrl-C ends them all. SIGTERM does, too, but
/// workers save what they run first. A daemon that dies is started again. Jobs that have not ended go on with
/// the next `nap up` of the same directory.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap up --workers 3
  wordcount INPUT --output OUT --cluster \"$HOME/.local/state/napreduce\"
  nap job list")]
pub struct Arguments {
    /// Workers [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(WORKERS_MAX)))]
    workers: Option<u32>,

    /// Map tasks at a time, of each worker [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(SLOTS_MAX)))]
    map_slots: Option<u32>,

    /// Reduce tasks at a time, of each worker [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(SLOTS_MAX)))]
    reduce_slots: Option<u32>,

    /// Fetch map output through connections even where it could be read in place
    #[arg(long)]
    network_shuffle: bool,

    /// Encrypt map output on its way
    #[arg(long)]
    encrypt_shuffle: bool,

    /// Where to serve the page, on this machine, or off [default: 127.0.0.1:8088, or another port if
    /// it is taken]
    #[arg(long, value_name = "ADDRESS:PORT|off", env = "NAPREDUCE_WEB")]
    web: Option<WebAddress>,

    #[command(flatten)]
    leave: LeaveArguments,

    #[command(flatten)]
    coordinator: crate::coordinator::Arguments,
}

/// What the main thread waits for.
#[derive(Debug)]
enum Event {
    /// The output of a daemon, by its place in the list, has ended; most likely so has the daemon.
    Silent(usize),
    Ready(String),
    NotReady(String),
    Signal(i32),
}

/// Runs the cluster until a signal comes.
pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    if cluster.coordinator.is_some() {
        bail!(
            "nap up runs a coordinator of its own; leave out --coordinator, or start workers with: nap worker"
        );
    }
    let directory = cluster.directory()?;
    // Workers start beside the coordinator, and need its secret.
    directory.create()?;
    let _lock = directory.lock_up()?;
    // One that runs by itself would be taken for ours.
    drop(directory.lock_coordinator()?);
    let Configuration { up: file, worker, web, .. } = cluster.configuration()?;
    let leave = arguments.leave.rules(&worker)?;
    let workers = chosen("workers", arguments.workers, file.workers, 2, WORKERS_MAX)?;
    let map_slots = chosen("map-slots", arguments.map_slots, file.map_slots, 2, SLOTS_MAX)?;
    let reduce_slots = chosen("reduce-slots", arguments.reduce_slots, file.reduce_slots, 1, SLOTS_MAX)?;
    let (events, arriving) = channel();
    listen(events.clone())?;
    // Flags are passed on; a daemon looks at the environment and the file by itself.
    let mut line = common_line("coordinator", cluster, directory.path());
    line.extend(arguments.coordinator.to_line());
    let mut daemons = vec![Daemon::new("coordinator", line)];
    for number in 1..=workers {
        let name = worker_name(number);
        let mut line = common_line("worker", cluster, directory.path());
        line.extend(["--name".into(), name.clone()]);
        line.extend(["--map-slots".into(), map_slots.to_string()]);
        line.extend(["--reduce-slots".into(), reduce_slots.to_string()]);
        line.extend(arguments.coordinator.log.to_line());
        line.extend(arguments.leave.to_line());
        line.extend(arguments.network_shuffle.then(|| "--network-shuffle".into()));
        line.extend(arguments.encrypt_shuffle.then(|| "--encrypt-shuffle".into()));
        daemons.push(Daemon::new(&name, line));
    }
    let page = match arguments.web.or(web.bind).unwrap_or(WebAddress::Usual) {
        WebAddress::Off => None,
        address => {
            Some(Running::start(ClusterPlace::Directory(directory.clone()), address, web.hosts, cluster)?)
        }
    };
    let readiness = Readiness { directory, workers, map_slots, reduce_slots };
    let mut up = Up { daemons, restarts: Restarts::default(), events, arriving, page, ready: false };
    let ran = up.run(readiness);
    // What is asked for in no hurry may take as long as the workers want.
    let drains = matches!(ran, Ok(SIGTERM)) && leave.on_terminate == OnTerminate::Drain;
    let ended = up.end(drains.then_some(leave.grace));
    ran?;
    ended
}

/// A flag has been checked; what a file says is held to the same.
fn chosen(name: &str, flag: Option<u32>, filed: Option<u32>, default: u32, max: u32) -> Result<u32> {
    let chosen = flag.or(filed).unwrap_or(default);
    if !(1..=max).contains(&chosen) {
        bail!("[up] {name} = {chosen} in the configuration file: 1 to {max} are allowed");
    }
    Ok(chosen)
}

/// `local-a` to `local-z`, `local-aa` and so on: nothing that could be taken for a number, which workers get
/// as they join.
fn worker_name(number: u32) -> String {
    let (mut left, mut letters) = (number, Vec::new());
    while left > 0 {
        letters.push(char::from_digit(10 + (left - 1) % 26, 36).unwrap_or('z'));
        left = (left - 1) / 26;
    }
    format!("local-{}", letters.iter().rev().collect::<String>())
}

fn common_line(command: &str, cluster: &ClusterArguments, directory: &Path) -> Vec<String> {
    let mut line = vec![command.to_owned(), "--dir".into(), directory.display().to_string()];
    if let Some(config) = &cluster.config {
        line.extend(["--config".into(), config.display().to_string()]);
    }
    line
}

/// Signals become events.
fn listen(events: Sender<Event>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot handle signals")?;
    thread::spawn(move || {
        for signal in signals.forever() {
            // The main thread is ending the program anyway when it no longer listens.
            let _ = events.send(Event::Signal(signal));
        }
    });
    Ok(())
}

struct Up {
    /// The coordinator first.
    daemons: Vec<Daemon>,
    restarts: Restarts,
    events: Sender<Event>,
    arriving: Receiver<Event>,
    page: Option<Running>,
    ready: bool,
}

impl Up {
    /// Until a signal comes; which one.
    fn run(&mut self, readiness: Readiness) -> Result<i32> {
        for index in 0..self.daemons.len() {
            self.start(index)?;
        }
        readiness.watch(self.events.clone());
        loop {
            match self.arriving.recv_timeout(self.restarts.next().unwrap_or(LOOK).min(LOOK)) {
                Ok(Event::Ready(line)) => {
                    self.ready = true;
                    let page = self.page.as_ref().map_or(Ok(String::new()), Running::line)?;
                    print(line + &page);
                }
                Ok(Event::NotReady(reason)) => bail!("the cluster did not come up: {reason}"),
                Ok(Event::Signal(signal)) => return Ok(signal),
                Ok(Event::Silent(index)) => self.look_after(index, true)?,
                Err(RecvTimeoutError::Timeout) => {
                    for index in 0..self.daemons.len() {
                        self.look_after(index, false)?;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => bail!("internal error: nobody listens for signals"),
            }
            for index in self.restarts.due() {
                self.start(index)?;
            }
        }
    }

    fn start(&mut self, index: usize) -> Result<()> {
        let events = self.events.clone();
        // The main thread is ending the program anyway when it no longer listens.
        self.daemons[index].start(move || drop(events.send(Event::Silent(index))))
    }

    /// Starts a daemon that has died again, after a while; not one that was drained.
    fn look_after(&mut self, index: usize, silent: bool) -> Result<()> {
        let is_coordinator = index == 0;
        let daemon = &mut self.daemons[index];
        let name = daemon.name.clone();
        let Some(Ended { how, well, wrongly, lived }) = daemon.ended(silent)? else { return Ok(()) };
        if is_coordinator && !self.ready {
            bail!("the coordinator ended before the cluster was up ({how}); see its lines above");
        }
        if well && !is_coordinator {
            print_error(format_args!("nap up: {name} has left and is not started again"));
            return Ok(());
        }
        if wrongly && !is_coordinator {
            print_error(format_args!(
                "nap up: {name} ended ({how}) and is not started again; see its lines above"
            ));
            return Ok(());
        }
        let after = self.restarts.plan(index, lived);
        print_error(format_args!("nap up: {name} ended ({how}); it is started again in {after:?}"));
        Ok(())
    }

    /// Workers first, so that they can give back what they run, or save it if there is a grace; a second
    /// signal kills what is left.
    fn end(&mut self, grace: Option<Duration>) -> Result<()> {
        let (coordinator, workers) = self.daemons.split_at_mut(1);
        let signal = if grace.is_some() { Signal::TERM } else { Signal::INT };
        for group in [workers, coordinator] {
            let until = Instant::now() + ENDING_MAX + grace.unwrap_or_default();
            for daemon in group.iter_mut() {
                daemon.ask_to_end(signal);
            }
            while group.iter_mut().any(|daemon| daemon.is_running()) {
                let left = until.saturating_duration_since(Instant::now());
                let event = self.arriving.recv_timeout(left.min(Duration::from_millis(50)));
                if left.is_zero() || matches!(event, Ok(Event::Signal(_))) {
                    break;
                }
            }
            for daemon in group.iter_mut() {
                daemon.kill()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_worker_says_no_number() {
        let names = [1, 2, 26, 27, 52, 53, 702, 703].map(worker_name);
        let expected = ["a", "b", "z", "aa", "az", "ba", "zz", "aaa"];
        assert_eq!(names, expected.map(|letters| format!("local-{letters}")));
    }

    #[test]
    fn a_file_is_held_to_what_flags_are_held_to() {
        assert_eq!(chosen("workers", None, None, 2, 9).expect("the default"), 2);
        assert_eq!(chosen("workers", Some(3), Some(0), 2, 9).expect("the flag"), 3);
        for filed in [0, 10] {
            let error =
                chosen("map-slots", None, Some(filed), 2, 9).expect_err("it makes no sense").to_string();
            let expected = format!("[up] map-slots = {filed} in the configuration file: 1 to 9 are allowed");
            assert_eq!(error, expected);
        }
    }
}
