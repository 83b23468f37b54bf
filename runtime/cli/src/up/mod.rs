//! `nap up`: a whole cluster on this machine, in the foreground. Coordinator and workers are separate
//! processes, which are restarted when they die.

mod daemon;
mod readiness;
mod restarts;

use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Parser};
use daemon::{Daemon, DaemonExit};
use napreduce_cluster::{
    ClusterPlace, CoordinatorConfiguration, OnTerminate, WorkerConfiguration, end_leftovers,
};
use napreduce_local::world::World;
use napreduce_protocol::printing::{print, print_error};
use readiness::Readiness;
use restarts::Restarts;
use rustix::process::Signal;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use crate::cluster::{
    ClusterArguments, Configuration, WebAddress, WebTable, without_empty_variables,
};
use crate::failure::usage;
use crate::parent::end_with_parent;
use crate::signals::ending_signals;
use crate::web::Dashboard;
use crate::worker::{DaemonArguments, LeaveArguments};

const WORKERS_MAX: u32 = 1000;
const SLOTS_MAX: u32 = 4096;
/// How long daemons may take to end before they are killed.
const ENDING_MAX: Duration = Duration::from_secs(15);
/// Interval of checks for daemons whose output is held open by another process.
const LOOK: Duration = Duration::from_millis(500);

/// Run a cluster on this machine, in the foreground
///
/// Starts a coordinator and workers as processes, and restarts them if they die. Ctrl-C ends all of them; on
/// SIGTERM, workers checkpoint their tasks first. Unfinished jobs continue with the next `nap up` in the same
/// directory.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap up --workers 3
  wordcount INPUT --output OUT --cluster \"$HOME/.local/state/napreduce\"
  nap job list")]
pub struct Arguments {
    /// Number of workers [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(WORKERS_MAX)))]
    workers: Option<u32>,

    /// Concurrent map tasks of each worker [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(SLOTS_MAX)), env = "NAPREDUCE_MAP_SLOTS")]
    map_slots: Option<u32>,

    /// Concurrent reduce tasks of each worker [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(SLOTS_MAX)), env = "NAPREDUCE_REDUCE_SLOTS")]
    reduce_slots: Option<u32>,

    /// Fetch map output over the network even if it is on the same machine
    #[arg(long)]
    network_shuffle: bool,

    /// Encrypt map output on the network
    #[arg(long)]
    encrypt_shuffle: bool,

    /// Address of the dashboard, or off [default: 127.0.0.1:8088, or another port if it is taken]
    #[arg(long, value_name = "ADDRESS:PORT|off", env = "NAPREDUCE_WEB")]
    web: Option<WebAddress>,

    #[command(flatten)]
    leave: LeaveArguments,

    #[command(flatten)]
    coordinator: crate::coordinator::Arguments,
}

/// An event for the main thread.
#[derive(Debug)]
enum Event {
    /// The output of a daemon, by index, has ended; most likely so has the daemon.
    Silent(usize),
    Ready(String),
    NotReady(String),
    Signal(i32),
}

/// Runs the cluster until a signal comes.
pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    end_with_parent()?;
    let Plan {
        coordinator,
        workers,
        web,
        settings,
    } = Plan::of(arguments, cluster).map_err(usage)?;
    let WorkerConfiguration {
        map_slots,
        reduce_slots,
        leave,
        ..
    } = settings.1;
    let directory = cluster.directory()?;
    // Workers start at the same time as the coordinator and need its secret.
    directory.create()?;
    let _lock = directory.lock_up()?;
    // Fail if a coordinator runs already: it would be mistaken for ours.
    drop(directory.lock_coordinator(&World::real().process)?);
    end_leftovers(&directory);
    let (events, arriving) = channel();
    listen(events.clone())?;
    let mut daemons = vec![Daemon::new("coordinator", coordinator)];
    daemons.extend(
        workers
            .into_iter()
            .map(|(name, line)| Daemon::new(&name, line)),
    );
    let count = u32::try_from(daemons.len() - 1)?;
    let page = match arguments.web.or(web.bind).unwrap_or(WebAddress::Usual) {
        WebAddress::Off => None,
        address => Some(Dashboard::start(
            ClusterPlace::Directory(directory.clone()),
            address,
            web.hosts,
            cluster,
        )?),
    };
    let readiness = Readiness {
        directory,
        workers: count,
        map_slots,
        reduce_slots,
    };
    let mut up = Up {
        daemons,
        restarts: Restarts::default(),
        events,
        arriving,
        page,
        ready: false,
    };
    let ran = up.run(readiness);
    // After SIGTERM workers have their grace.
    let drains = matches!(ran, Ok(SIGTERM)) && leave.on_terminate == OnTerminate::Drain;
    let ended = up.end(drains.then_some(leave.grace));
    ran?;
    ended
}

/// The processes to start, from flags, environment and file.
#[derive(Debug)]
struct Plan {
    /// The arguments of the coordinator.
    coordinator: Vec<OsString>,
    /// The names of the workers, and their arguments.
    workers: Vec<(String, Vec<OsString>)>,
    web: WebTable,
    /// The settings with which the daemons will run.
    settings: (CoordinatorConfiguration, WorkerConfiguration),
}

impl Plan {
    /// Fails if a daemon would reject its arguments, or if a setting would have no effect.
    fn of(arguments: &Arguments, cluster: &ClusterArguments) -> Result<Plan> {
        if cluster.coordinator.is_some() {
            bail!(
                "--coordinator: nap up runs its own coordinator; leave it out, or start workers with: nap worker"
            );
        }
        let directory = cluster.directory()?;
        let Configuration {
            up: file,
            worker,
            web,
            ..
        } = cluster.configuration()?;
        let count = chosen(
            "[up] workers",
            arguments.workers.or(file.workers),
            2,
            WORKERS_MAX,
        )?;
        let slots =
            |name: &str, flag: Option<u32>, of_up: Option<u32>, of_worker: Option<u32>, default| {
                let table = if of_up.is_some() { "up" } else { "worker" };
                chosen(
                    &format!("[{table}] {name}"),
                    flag.or(of_up).or(of_worker),
                    default,
                    SLOTS_MAX,
                )
            };
        let map_slots = slots(
            "map-slots",
            arguments.map_slots,
            file.map_slots,
            worker.map_slots,
            2,
        )?;
        let reduce_slots = slots(
            "reduce-slots",
            arguments.reduce_slots,
            file.reduce_slots,
            worker.reduce_slots,
            1,
        )?;
        // Flags are passed on; daemons read the environment and the file themselves.
        let mut coordinator = common_line("coordinator", cluster, directory.path());
        coordinator.extend(arguments.coordinator.to_line());
        let mut line = common_line("worker", cluster, directory.path());
        line.extend(["--map-slots".into(), map_slots.to_string().into()]);
        line.extend(["--reduce-slots".into(), reduce_slots.to_string().into()]);
        line.extend(arguments.coordinator.log.to_line());
        line.extend(arguments.leave.to_line().into_iter().map(OsString::from));
        line.extend(
            arguments
                .network_shuffle
                .then(|| "--network-shuffle".into()),
        );
        line.extend(
            arguments
                .encrypt_shuffle
                .then(|| "--encrypt-shuffle".into()),
        );
        let of_coordinator = parse::<CoordinatorLine>(&coordinator)?;
        let of_worker = parse::<WorkerLine>(&line)?;
        let settings = (
            crate::coordinator::configuration(&of_coordinator.arguments, &of_coordinator.cluster)?,
            crate::worker::configuration(&of_worker.arguments, &of_worker.cluster)?,
        );
        let named = settings.1.name.clone();
        if count > 1 {
            check_shareable(&settings.1, count)?;
        }
        let of_number = |number| {
            let name = named.clone().unwrap_or_else(|| worker_name(number));
            let own = ["--name".into(), OsString::from(&name)];
            (name, line.iter().cloned().chain(own).collect())
        };
        let workers = (1..=count).map(of_number).collect();
        Ok(Plan {
            coordinator,
            workers,
            web,
            settings,
        })
    }
}

/// Fails if several workers would share a setting that must be unique.
fn check_shareable(worker: &WorkerConfiguration, count: u32) -> Result<()> {
    let has_port = |address: &str| {
        address
            .rsplit_once(':')
            .is_some_and(|(_, port)| port != "0")
    };
    let setting = if worker.name.is_some() {
        "name"
    } else if worker.directory.is_some() {
        "directory"
    } else if has_port(&worker.bind) {
        "bind with a port"
    } else if worker.advertise.as_deref().is_some_and(has_port) {
        "advertise with a port"
    } else {
        return Ok(());
    };
    bail!(
        "[worker] {setting}: cannot be shared by {count} workers; leave it out, or give --workers 1"
    )
}

/// The command line of a coordinator.
#[derive(Parser)]
struct CoordinatorLine {
    #[command(flatten)]
    arguments: crate::coordinator::Arguments,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// The command line of a worker.
#[derive(Parser)]
struct WorkerLine {
    #[command(flatten)]
    arguments: DaemonArguments,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Parses a command line and the environment as a daemon does.
fn parse<P: Parser>(line: &[OsString]) -> Result<P> {
    let matches = without_empty_variables(P::command()).try_get_matches_from(line)?;
    Ok(P::from_arg_matches(&matches)?)
}

/// Returns a given value or the default. Fails if it is out of range, which only the file can cause.
fn chosen(setting: &str, given: Option<u32>, default: u32, max: u32) -> Result<u32> {
    let chosen = given.unwrap_or(default);
    if !(1..=max).contains(&chosen) {
        bail!("{setting} = {chosen} in the configuration file: must be 1 to {max} for nap up");
    }
    Ok(chosen)
}

/// Returns `local-a` to `local-z`, `local-aa` and so on. Digits would look like the numbers of workers.
fn worker_name(number: u32) -> String {
    let mut left = number;
    let mut letters = Vec::new();
    while left > 0 {
        letters.push(char::from_digit(10 + (left - 1) % 26, 36).unwrap_or('z'));
        left = (left - 1) / 26;
    }
    format!("local-{}", letters.iter().rev().collect::<String>())
}

fn common_line(command: &str, cluster: &ClusterArguments, directory: &Path) -> Vec<OsString> {
    let mut line = vec![command.into(), "--dir".into(), directory.into()];
    if let Some(config) = &cluster.config {
        line.extend(["--config".into(), config.into()]);
    }
    line
}

/// Forwards signals as events.
fn listen(events: Sender<Event>) -> Result<()> {
    let mut signals = ending_signals()
        .and_then(Signals::new)
        .context("cannot handle signals")?;
    thread::spawn(move || {
        for signal in signals.forever() {
            // Fails only while the main thread ends the program.
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
    page: Option<Dashboard>,
    ready: bool,
}

impl Up {
    /// Runs the daemons until a signal arrives, which it returns.
    fn run(&mut self, readiness: Readiness) -> Result<i32> {
        for index in 0..self.daemons.len() {
            self.start(index)?;
        }
        readiness.watch(self.events.clone());
        loop {
            match self
                .arriving
                .recv_timeout(self.restarts.next().unwrap_or(LOOK).min(LOOK))
            {
                Ok(Event::Ready(line)) => {
                    self.ready = true;
                    let page = self
                        .page
                        .as_ref()
                        .map_or(Ok(String::new()), Dashboard::line)?;
                    print(line + &page);
                }
                Ok(Event::NotReady(reason)) => bail!("cannot start the cluster: {reason}"),
                Ok(Event::Signal(signal)) => return Ok(signal),
                Ok(Event::Silent(index)) => self.plan_restart(index, true)?,
                Err(RecvTimeoutError::Timeout) => {
                    for index in 0..self.daemons.len() {
                        self.plan_restart(index, false)?;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("internal error: the thread for signals has ended")
                }
            }
            for index in self.restarts.due() {
                self.start(index)?;
            }
        }
    }

    fn start(&mut self, index: usize) -> Result<()> {
        let events = self.events.clone();
        // Fails only while the main thread ends the program.
        self.daemons[index].start(move || drop(events.send(Event::Silent(index))))
    }

    /// Plans the restart of a daemon that has died, unless it was drained.
    fn plan_restart(&mut self, index: usize, silent: bool) -> Result<()> {
        let is_coordinator = index == 0;
        let daemon = &mut self.daemons[index];
        let name = daemon.name.clone();
        let Some(DaemonExit {
            how,
            well,
            wrongly,
            lived,
        }) = daemon.ended(silent)?
        else {
            return Ok(());
        };
        if is_coordinator && !self.ready {
            bail!(
                "the coordinator ended before the cluster was up ({how}); see its messages above"
            );
        }
        if well && !is_coordinator {
            print_error(format_args!("nap up: {name} has left and is not restarted"));
            return Ok(());
        }
        if wrongly && !is_coordinator {
            print_error(format_args!(
                "nap up: {name} ended ({how}) and is not restarted; see its messages above"
            ));
            return Ok(());
        }
        let after = self.restarts.plan(index, lived);
        print_error(format_args!(
            "nap up: {name} ended ({how}); restarting in {after:?}"
        ));
        Ok(())
    }

    /// Ends the workers, which checkpoint their tasks if there is a grace, then the coordinator. A second signal
    /// kills what is left.
    fn end(&mut self, grace: Option<Duration>) -> Result<()> {
        let (coordinator, workers) = self.daemons.split_at_mut(1);
        let signal = if grace.is_some() {
            Signal::TERM
        } else {
            Signal::INT
        };
        for group in [workers, coordinator] {
            let until = Instant::now() + ENDING_MAX + grace.unwrap_or_default();
            for daemon in group.iter_mut() {
                daemon.ask_to_end(signal);
            }
            while group.iter_mut().any(|daemon| daemon.is_running()) {
                let left = until.saturating_duration_since(Instant::now());
                let event = self
                    .arriving
                    .recv_timeout(left.min(Duration::from_millis(50)));
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
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::failure::in_words;

    #[test]
    fn worker_name_contains_no_digit() {
        let names = [1, 2, 26, 27, 52, 53, 702, 703].map(worker_name);
        let expected = ["a", "b", "z", "aa", "az", "ba", "zz", "aaa"];
        assert_eq!(names, expected.map(|letters| format!("local-{letters}")));
    }

    #[test]
    fn file_value_out_of_range_is_rejected() {
        assert_eq!(chosen("workers", None, 2, 9).expect("the default"), 2);
        assert_eq!(chosen("workers", Some(3), 2, 9).expect("the flag"), 3);
        for in_file in [0, 10] {
            let error = chosen("[up] map-slots", Some(in_file), 2, 9)
                .expect_err("it makes no sense")
                .to_string();
            let expected = format!(
                "[up] map-slots = {in_file} in the configuration file: must be 1 to 9 for nap up"
            );
            assert_eq!(error, expected);
        }
    }

    /// A setting of the file: its table, its name, values that differ from the default, one that is invalid.
    type Setting = (
        &'static str,
        &'static str,
        &'static [&'static str],
        &'static str,
    );

    const SETTINGS: &[Setting] = &[
        ("coordinator", "bind", &["\"127.0.0.1:7000\""], "7"),
        (
            "coordinator",
            "heartbeat",
            &["\"300ms\"", "\"1s\""],
            "\"soon\"",
        ),
        ("coordinator", "liveness", &["\"1m\""], "\"100ms\""),
        (
            "coordinator",
            "fsync",
            &["\"always\"", "\"20ms\""],
            "\"now\"",
        ),
        (
            "coordinator",
            "journal-bytes-max",
            &["\"1MiB\"", "512"],
            "\"much\"",
        ),
        ("coordinator", "history-max", &["7"], "-1"),
        ("coordinator", "history-bytes-max", &["\"2k\""], "\"2x\""),
        ("coordinator", "blob-bytes-max", &["\"2k\""], "-2"),
        ("coordinator", "speculation", &["false"], "\"no\""),
        ("coordinator", "failed-logs", &["false"], "0"),
        ("coordinator", "crashes-max", &["7", "0"], "-1"),
        (
            "coordinator",
            "scheduler",
            &["\"fair\"", "\"natjam\""],
            "\"fare\"",
        ),
        ("coordinator", "queues", &["[\"a\", \"b\"]"], "7"),
        ("worker", "name", &["\"w\""], "7"),
        ("worker", "directory", &["\"/w\""], "7"),
        ("worker", "map-slots", &["7", "4096"], "4097"),
        ("worker", "reduce-slots", &["7"], "0"),
        (
            "worker",
            "bind",
            &["\"127.0.0.2:0\"", "\"127.0.0.1:7001\""],
            "7",
        ),
        ("worker", "advertise", &["\"here\"", "\"here:7001\""], "7"),
        ("worker", "rack", &["\"/r\""], "\"a b\""),
        ("worker", "network-shuffle", &["true"], "1"),
        ("worker", "encrypt-shuffle", &["true"], "\"yes\""),
        ("worker", "blob-bytes-max", &["\"2k\""], "\"much\""),
        ("worker", "log-bytes-max", &["\"2k\""], "\"much\""),
        ("worker", "logs-bytes-max", &["\"2k\""], "\"much\""),
        ("worker", "disk-reserve", &["\"2k\""], "\"much\""),
        ("worker", "segment-memory", &["\"2k\"", "0"], "\"much\""),
        ("worker", "task-silence-max", &["\"7s\""], "7"),
        ("worker", "suspend-grace", &["\"7s\""], "\"soon\""),
        ("worker", "suspend-bytes-max", &["\"2k\""], "\"much\""),
        ("worker", "suspend-swap-percent", &["7"], "\"7\""),
        ("worker", "suspend-pressure-percent", &["7"], "-7"),
        (
            "worker",
            "isolation",
            &["\"none\"", "\"watchdog\""],
            "\"some\"",
        ),
        ("worker", "memory-factor", &["7"], "0"),
        ("worker", "pass-environment", &["[\"A\"]"], "\"A\""),
        ("worker", "page-out", &["\"never\""], "\"sometimes\""),
        ("worker", "on-terminate", &["\"leave\""], "\"stay\""),
        ("worker", "grace", &["\"50s\""], "\"0s\""),
        ("worker", "time-limit", &["\"10h\""], "\"1s\""),
        ("up", "workers", &["1", "3"], "0"),
        ("up", "map-slots", &["7"], "0"),
        ("up", "reduce-slots", &["7"], "\"7\""),
        (
            "web",
            "bind",
            &["\"127.0.0.1:9000\"", "\"off\""],
            "\"nowhere\"",
        ),
        ("web", "hosts", &["[\"a.example\"]"], "7"),
    ];

    #[derive(Parser)]
    struct UpLine {
        #[command(flatten)]
        arguments: Arguments,
        #[command(flatten)]
        cluster: ClusterArguments,
    }

    /// Settings by their places in the table, each with a value.
    type File = BTreeMap<usize, &'static str>;

    fn plan(file: &File) -> Result<String, String> {
        let path = tempfile::Builder::new()
            .suffix(".toml")
            .tempfile()
            .expect("a file");
        let mut text = String::new();
        for table in ["coordinator", "worker", "up", "web"] {
            text += &format!("[{table}]\n");
            let of_table = file
                .iter()
                .filter(|(index, _)| SETTINGS[**index].0 == table);
            text.extend(
                of_table.map(|(index, value)| format!("{} = {value}\n", SETTINGS[*index].1)),
            );
        }
        std::fs::write(&path, text).expect("a written file");
        let line = ["up", "--dir", "/nowhere", "--config"].map(OsString::from);
        let line = [&line[..], &[path.path().into()]].concat();
        let UpLine { arguments, cluster } = parse(&line).expect("a command line");
        let plan = Plan::of(&arguments, &cluster).map_err(|error| in_words(&error))?;
        Ok(format!("{plan:?}").replace(&path.path().display().to_string(), "FILE"))
    }

    #[test]
    fn table_of_settings_is_complete() {
        for table in ["coordinator", "worker", "up", "web"] {
            let error = toml::from_str::<Configuration>(&format!("[{table}]\nnosuch = 1"))
                .expect_err(table);
            let expected = error
                .message()
                .split_once("expected")
                .expect("it lists them")
                .1;
            let known: BTreeSet<&str> = expected.split('`').skip(1).step_by(2).collect();
            let tested = SETTINGS
                .iter()
                .filter(|setting| setting.0 == table)
                .map(|setting| setting.1);
            assert_eq!(tested.collect::<BTreeSet<_>>(), known, "{table}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_setting_has_an_effect_or_is_rejected(
            chosen in prop::collection::btree_map(0..SETTINGS.len(), (0..2usize, 0..60u32), 0..12)
        ) {
            let mut file = File::new();
            for (index, (value, luck)) in chosen {
                let (_, _, valid, invalid) = SETTINGS[index];
                file.insert(index, if luck > 0 { valid[value % valid.len()] } else { invalid });
            }
            // The table [up] is about the same workers, and wins.
            for name in ["map-slots", "reduce-slots"] {
                let at = |table| SETTINGS.iter().position(|one| (one.0, one.1) == (table, name)).expect(name);
                if file.contains_key(&at("up")) {
                    file.remove(&at("worker"));
                }
            }
            let is_valid = file.iter().all(|(index, value)| *value != SETTINGS[*index].3);
            match plan(&file) {
                Err(why) => prop_assert!(!is_valid || why.contains("cannot be shared by"), "{file:?}: {why}"),
                Ok(with) => {
                    prop_assert!(is_valid, "an invalid value is accepted: {file:?}");
                    for index in file.keys() {
                        let mut others = file.clone();
                        others.remove(index);
                        let without = plan(&others);
                        prop_assert!(without.as_ref() != Ok(&with), "{:?} has no effect", SETTINGS[*index]);
                    }
                }
            }
        }
    }
}
