//! `nap worker list`: the workers of a cluster, optionally after waiting for a number of them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use napreduce_answers::{PerformanceAnswer, WorkerAnswer};
use napreduce_protocol::requests::ListWorkers;
use napreduce_protocol::{
    SuspendedMemory, WorkerPhase, WorkerSummary, parse_time, printing::print_error,
};
use napreduce_web::{ClusterSource, recent_performance};
use serde::Serialize;

use super::LOOK;
use crate::cluster::ClusterArguments;
use crate::format::{Format, FormatArguments, span};
use crate::listing::{Compare, Listed, ListingArguments, print_total};
use crate::screen::{Column, Fit, Screen};

#[derive(Debug, Clone, Args)]
pub struct ListArguments {
    /// Wait until this many workers are up
    #[arg(long, value_name = "N")]
    wait: Option<usize>,

    /// How long to wait
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "30s")]
    timeout: Duration,

    /// Include recent workers that were lost or have left, with time and reason
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    listing: ListingArguments<WorkerSummary>,

    #[command(flatten)]
    format: FormatArguments,
}

/// A worker with its results in the last hour.
#[derive(Debug, Serialize)]
struct WorkerRow {
    #[serde(flatten)]
    worker: WorkerAnswer,
    failures_per_hour: f64,
    /// Relative to other workers at the same jobs; `None` if too few attempts can be compared.
    speed: Option<f64>,
}

impl WorkerRow {
    fn of(worker: &WorkerSummary, results: &[PerformanceAnswer]) -> WorkerRow {
        let worker = WorkerAnswer::from(worker);
        let known = results.iter().find(|known| known.worker == worker.worker);
        WorkerRow {
            failures_per_hour: known.map_or(0.0, |known| known.failures_per_hour),
            speed: known.and_then(|known| known.speed),
            worker,
        }
    }
}

pub fn list(arguments: &ListArguments, cluster: &ClusterArguments) -> Result<()> {
    let mut client = cluster.connect()?;
    let until = Instant::now() + arguments.timeout;
    let mut workers = client.ask(ListWorkers)?;
    if let Some(wanted) = arguments.wait {
        loop {
            let up = workers.iter().filter(|worker| is_up(worker)).count();
            if up >= wanted {
                break;
            }
            if Instant::now() >= until {
                let are = if wanted == 1 {
                    "worker is"
                } else {
                    "workers are"
                };
                bail!(
                    "{up} of {wanted} {are} up after {:?}; start more with: nap worker",
                    arguments.timeout
                );
            }
            std::thread::sleep(LOOK);
            workers = client.ask(ListWorkers)?;
        }
    }
    let shows_gone = arguments.all || arguments.listing.names_states();
    workers.retain(|worker| shows_gone || !is_gone(worker));
    let total = arguments.listing.select(&mut workers);
    let (results, remarks) = match arguments.format.format {
        // It reads every job of an hour, too much for a list of columns that do not fit.
        Format::Table => (Vec::new(), Vec::new()),
        Format::Json => recent_performance(&ClusterSource::new(cluster.place()?))?,
    };
    let rows = || {
        workers
            .iter()
            .map(|worker| WorkerRow::of(worker, &results))
            .collect::<Vec<_>>()
    };
    arguments
        .format
        .print(|screen| text(&workers, screen), rows)?;
    for remark in remarks {
        print_error(format_args!("nap: {remark}"));
    }
    print_total::<WorkerSummary>(workers.len(), total);
    Ok(())
}

impl Listed for WorkerSummary {
    const KIND: &'static str = "worker";
    const STATES: &'static [&'static str] = &WorkerPhase::WORDS;
    const SORTED: &'static [(&'static str, Compare<WorkerSummary>)] = &[
        ("worker", |one, other| one.worker.cmp(&other.worker)),
        ("name", |one, other| one.name.cmp(&other.name)),
        ("host", |one, other| one.host.cmp(&other.host)),
        ("rack", |one, other| one.rack.cmp(&other.rack)),
        ("state", |one, other| {
            one.state.in_words().cmp(other.state.in_words())
        }),
        ("maps", |one, other| one.map_slots.1.cmp(&other.map_slots.1)),
        ("reduces", |one, other| {
            one.reduce_slots.1.cmp(&other.reduce_slots.1)
        }),
        ("heard", |one, other| {
            one.silent_millis.cmp(&other.silent_millis)
        }),
    ];

    fn is_in(&self, state: &str) -> bool {
        self.state.in_words() == state
    }
}

/// Whether the worker may get tasks.
pub fn is_up(worker: &WorkerSummary) -> bool {
    worker.state == WorkerPhase::Up
}

/// Whether the worker has left or is lost; it never returns under this ID.
pub fn is_gone(worker: &WorkerSummary) -> bool {
    matches!(worker.state, WorkerPhase::Lost | WorkerPhase::Left)
}

pub fn text(workers: &[WorkerSummary], screen: &Screen) -> String {
    let keeps = workers
        .iter()
        .any(|worker| !worker.memory.suspended.is_empty());
    let racks: BTreeSet<&str> = workers.iter().map(|worker| worker.rack.as_str()).collect();
    let columns: [Column<WorkerSummary>; 11] = [
        Column::new("WORKER", Fit::Whole, |worker, _| worker.worker.to_string()),
        Column::new("NAME", Fit::Cut, |worker, _| worker.name.clone()),
        Column::new("HOST", Fit::Cut, |worker, _| worker.host.clone()),
        Column::new("RACK", Fit::Cut, |worker: &WorkerSummary, _| {
            worker.rack.clone()
        })
        .only_if(racks.len() > 1),
        Column::new("STATE", Fit::Whole, |worker, _| worker.state_in_words()),
        Column::new("MAPS", Fit::Whole, |worker, _| slots(worker.map_slots)),
        Column::new("REDUCES", Fit::Whole, |worker, _| {
            slots(worker.reduce_slots)
        }),
        Column::new("SUSPENDED", Fit::Drop(1), |worker: &WorkerSummary, _| {
            held(&worker.memory.suspended)
        })
        .only_if(keeps),
        Column::new("ISOLATION", Fit::Drop(3), |worker, _| {
            worker.isolation.clone()
        }),
        Column::new("HEARD", Fit::Drop(2), |worker, _| {
            format!("{} ago", span(worker.silent_millis))
        }),
        Column::new("WHY", Fit::Below, why),
    ];
    screen.list(&columns, workers)
}

fn slots((slots, used): (u32, u32)) -> String {
    format!("{used}/{slots}")
}

fn why(worker: &WorkerSummary, screen: &Screen) -> String {
    match (worker.gone_millis, worker.reason.as_deref()) {
        (Some(at), why) => {
            format!(
                "{} at {}: {}",
                worker.state,
                screen.moment(at),
                why.unwrap_or("unknown reason")
            )
        }
        (None, why) => why.unwrap_or_default().to_owned(),
    }
}

/// Formats the number of suspended attempts and their memory and swap.
fn held(suspended: &[SuspendedMemory]) -> String {
    let mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let sum = |of: fn(&SuspendedMemory) -> u64| suspended.iter().map(of).sum::<u64>();
    match (
        sum(|held| held.resident_bytes),
        sum(|held| held.swapped_bytes),
    ) {
        _ if suspended.is_empty() => String::new(),
        (resident, 0) => format!("{}: {}", suspended.len(), mebibytes(resident)),
        (resident, swapped) => {
            format!(
                "{}: {}, {} in swap",
                suspended.len(),
                mebibytes(resident),
                mebibytes(swapped)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
    use napreduce_protocol::WorkerMemory;

    use super::*;
    use crate::ids::find_worker;

    fn worker() -> WorkerSummary {
        WorkerSummary {
            worker: WorkerId(1),
            name: "left-hand".to_owned(),
            host: "ada".to_owned(),
            rack: "/default-rack".to_owned(),
            state: WorkerPhase::Up,
            remarks: Vec::new(),
            failing: None,
            isolation: "cgroup v2".to_owned(),
            gone_millis: None,
            reason: None,
            map_slots: (2, 1),
            reduce_slots: (1, 0),
            silent_millis: 150,
            memory: WorkerMemory::default(),
        }
    }

    #[test]
    fn worker_list_shows_slots_racks_and_reasons() {
        assert_eq!(
            text(&[worker()], &Screen::plain()),
            "WORKER       NAME       HOST  STATE  MAPS  REDUCES  ISOLATION  HEARD      WHY\n\
             worker_0001  left-hand  ada   up     1/2   0/1      cgroup v2  0.1 s ago\n"
        );
        let task = TaskId {
            job: JobId(7),
            kind: TaskKind::Reduce,
            index: 1,
        };
        let held = |swapped_bytes| SuspendedMemory {
            attempt: AttemptId { task, number: 1 },
            resident_bytes: 3 << 20,
            swapped_bytes,
        };
        let keeps = |suspended| {
            let memory = WorkerMemory {
                suspended,
                ..WorkerMemory::default()
            };
            text(&[WorkerSummary { memory, ..worker() }], &Screen::plain())
        };
        assert!(
            keeps(vec![held(0)]).contains("SUSPENDED")
                && keeps(vec![held(0)]).contains("1: 3.0 MiB ")
        );
        assert!(keeps(vec![held(0), held(1 << 20)]).contains("2: 6.0 MiB, 1.0 MiB in swap"));
        let worker_2 = WorkerId(2);
        let rack = "/row-2".to_owned();
        let elsewhere = WorkerSummary {
            worker: worker_2,
            rack,
            ..worker()
        };
        assert_eq!(
            text(&[worker(), elsewhere], &Screen::plain()),
            "WORKER       NAME       HOST  RACK           STATE  MAPS  REDUCES  ISOLATION  HEARD      WHY\n\
             worker_0001  left-hand  ada   /default-rack  up     1/2   0/1      cgroup v2  0.1 s ago\n\
             worker_0002  left-hand  ada   /row-2         up     1/2   0/1      cgroup v2  0.1 s ago\n"
        );
        let state = WorkerPhase::Lost;
        let reason = Some("no message for 5.0 s".to_owned());
        let lost = WorkerSummary {
            state,
            gone_millis: Some(1_790_000_000_000),
            reason,
            ..worker()
        };
        let listing = text(&[lost], &Screen::plain());
        assert!(
            listing.ends_with("lost at 2026-09-21T14:13:20Z: no message for 5.0 s\n"),
            "{listing}"
        );
    }

    #[test]
    fn worker_json_has_failures_and_speed() {
        let slow = PerformanceAnswer {
            worker: "worker_0001".to_owned(),
            worker_name: "left-hand".to_owned(),
            succeeded: 7,
            failed: 2,
            failures_per_hour: 2.0,
            speed: Some(0.5),
            failing: Vec::new(),
        };
        let json = |results: &[PerformanceAnswer]| {
            serde_json::to_value(WorkerRow::of(&worker(), results)).expect("JSON")
        };
        let row = json(&[
            PerformanceAnswer {
                worker: "worker_0002".to_owned(),
                ..slow.clone()
            },
            slow,
        ]);
        assert_eq!(
            (&row["name"], &row["map"]["used"]),
            (&"left-hand".into(), &1.into())
        );
        assert_eq!(
            (&row["failures_per_hour"], &row["speed"]),
            (&2.0.into(), &0.5.into())
        );
        let row = json(&[]);
        assert_eq!(
            (&row["failures_per_hour"], &row["speed"]),
            (&0.0.into(), &serde_json::Value::Null)
        );
    }

    #[test]
    fn find_worker_accepts_number_or_name() {
        let again = WorkerSummary {
            worker: WorkerId(3),
            ..worker()
        };
        let workers = [worker(), again];
        for (text, id) in [("1", 1), ("worker_0001", 1), ("left-hand", 3)] {
            assert_eq!(find_worker(text, &workers).expect(text), WorkerId(id));
        }
        for text in ["2", "worker_", "", "right-hand"] {
            let error = find_worker(text, &workers).expect_err(text).to_string();
            assert_eq!(error, format!("no worker {text}; see: nap worker list"));
        }
    }
}
