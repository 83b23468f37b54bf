//! `nap worker list`: the workers of a cluster.
//!
//! Owns its arguments, waiting until so many are up, and how they are printed. Does not own the
//! answers (live runtime).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use napreduce_live::{ClusterClient, WorkerPhase, WorkerSummary, parse_time};
use napreduce_web::answers::WorkerAnswer;

use super::LOOK;
use crate::format::{FormatArguments, span};
use crate::screen::Screen;

#[derive(Debug, Clone, Args)]
pub struct ListArguments {
    /// Wait until so many are up
    #[arg(long, value_name = "N")]
    wait: Option<usize>,

    /// How long to wait
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "30s")]
    timeout: Duration,

    /// Also the last ones that were lost or have left, with when and why
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    format: FormatArguments,
}

pub fn list(arguments: &ListArguments, client: &mut ClusterClient) -> Result<()> {
    let until = Instant::now() + arguments.timeout;
    let mut workers = client.workers()?;
    if let Some(wanted) = arguments.wait {
        loop {
            let up = workers.iter().filter(|worker| is_up(worker)).count();
            if up >= wanted {
                break;
            }
            if Instant::now() >= until {
                let are = if wanted == 1 { "worker is" } else { "workers are" };
                bail!("{up} of {wanted} {are} up after {:?}; start more with: nap worker", arguments.timeout);
            }
            std::thread::sleep(LOOK);
            workers = client.workers()?;
        }
    }
    workers.retain(|worker| arguments.all || !is_gone(worker));
    arguments
        .format
        .print(|screen| text(&workers, screen), || workers.iter().map(WorkerAnswer::from).collect::<Vec<_>>())
}

/// Whether it may get tasks.
pub fn is_up(worker: &WorkerSummary) -> bool {
    worker.state == WorkerPhase::Up
}

/// Whether it will never be heard of again under this number.
pub fn is_gone(worker: &WorkerSummary) -> bool {
    matches!(worker.state, WorkerPhase::Lost | WorkerPhase::Left)
}

fn text(workers: &[WorkerSummary], screen: &Screen) -> String {
    let racks: BTreeSet<&str> = workers.iter().map(|worker| worker.rack.as_str()).collect();
    let row = |worker: &WorkerSummary| {
        let slots = |(slots, used): (u32, u32)| format!("{used}/{slots}");
        let why = match (worker.gone_millis, worker.reason.as_deref()) {
            (Some(at), why) => {
                format!("{} at {}: {}", worker.state, screen.moment(at), why.unwrap_or("nobody knows why"))
            }
            (None, why) => why.unwrap_or_default().to_owned(),
        };
        let mut cells = vec![
            worker.worker.to_string(),
            worker.name.clone(),
            worker.host.clone(),
            worker.state_in_words(),
            slots(worker.map_slots),
            slots(worker.reduce_slots),
            worker.isolation.clone(),
            format!("{} ago", span(worker.silent_millis)),
            why,
        ];
        if racks.len() > 1 {
            cells.insert(3, worker.rack.clone());
        }
        cells
    };
    let mut headings =
        vec!["WORKER", "NAME", "HOST", "STATE", "MAPS", "REDUCES", "ISOLATION", "HEARD", "WHY"];
    if racks.len() > 1 {
        headings.insert(3, "RACK");
    }
    screen.table(&headings, workers.iter().map(row))
}

#[cfg(test)]
mod tests {
    use napreduce_core::WorkerId;

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
            isolation: "cgroup v2".to_owned(),
            gone_millis: None,
            reason: None,
            map_slots: (2, 1),
            reduce_slots: (1, 0),
            silent_millis: 150,
        }
    }

    #[test]
    fn workers_are_listed_with_their_slots() {
        assert_eq!(
            text(&[worker()], &Screen::plain()),
            "WORKER       NAME       HOST  STATE  MAPS  REDUCES  ISOLATION  HEARD      WHY\n\
             worker_0001  left-hand  ada   up     1/2   0/1      cgroup v2  0.1 s ago\n"
        );
        let (worker_2, rack) = (WorkerId(2), "/row-2".to_owned());
        let elsewhere = WorkerSummary { worker: worker_2, rack, ..worker() };
        assert_eq!(
            text(&[worker(), elsewhere], &Screen::plain()),
            "WORKER       NAME       HOST  RACK           STATE  MAPS  REDUCES  ISOLATION  HEARD      WHY\n\
             worker_0001  left-hand  ada   /default-rack  up     1/2   0/1      cgroup v2  0.1 s ago\n\
             worker_0002  left-hand  ada   /row-2         up     1/2   0/1      cgroup v2  0.1 s ago\n"
        );
        let (state, reason) = (WorkerPhase::Lost, Some("nothing was heard of it for 5.0 s".to_owned()));
        let lost = WorkerSummary { state, gone_millis: Some(1_790_000_000_000), reason, ..worker() };
        let told = text(&[lost], &Screen::plain());
        assert!(
            told.ends_with("lost at 2026-09-21T14:13:20Z: nothing was heard of it for 5.0 s\n"),
            "{told}"
        );
    }

    #[test]
    fn a_worker_is_found_by_number_or_name() {
        let again = WorkerSummary { worker: WorkerId(3), ..worker() };
        let workers = [worker(), again];
        for (text, id) in [("1", 1), ("worker_0001", 1), ("left-hand", 3)] {
            assert_eq!(find_worker(text, &workers).expect(text), WorkerId(id));
        }
        for text in ["2", "worker_", "", "right-hand"] {
            let error = find_worker(text, &workers).expect_err(text).to_string();
            assert_eq!(error, format!("there is no worker {text}; see: nap worker list"));
        }
    }
}
