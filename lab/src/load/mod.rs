//! Owns loads of a cluster: many jobs from many clients, one job of many tasks, many idle workers, and a
//! coordinator that is started again after it has lived through many jobs. What is measured is the
//! coordinator; the jobs do next to nothing.

mod report;
mod usage;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use napreduce_engine::Slots;
use napreduce_live::{ByteSize, parse_time};
pub use report::{Load, LoadReport};
use rustix::process::Pid;
use usage::{DaemonUsage, Reading, Used};

use crate::daemons::nap;
use crate::error::{LabError, LiveClusterError};
use crate::guard::Guard;
use crate::jobs::{Work, own_binary};
use crate::live_cluster::{JobOrder, Layout, LiveCluster, guarded_folder};
use crate::process::{ProcessError, last_words, spawn};
use crate::session::Session;
use crate::workspace::{WorkError, write};

const HEARTBEAT: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(20);
/// A load that takes longer is a failure.
const LIMIT: Duration = Duration::from_secs(3600);
/// The bytes of a line of an input: one map task reads one or more whole lines.
const LINE_BYTES: u64 = 8;

/// What a cluster is asked for; what is absent is left out.
#[derive(Clone, Debug, Args)]
pub struct LoadSettings {
    /// So many jobs of one map each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub jobs: Option<u64>,
    /// From so many clients at once, each of which waits for its job before it hands in the next
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clients: u32,
    /// One job of so many maps, or of so many maps and reduces; may be given several times
    #[arg(long = "shape", value_name = "MAPS[xREDUCES]", value_parser = shape)]
    pub shapes: Vec<(u32, u32)>,
    /// So many workers that do nothing
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub idle_workers: Option<u32>,
    /// How long they are looked at
    #[arg(long = "for", value_name = "TIME", default_value = "20s", value_parser = parse_time)]
    pub time: Duration,
    /// Afterwards kill the coordinator and start it again
    #[arg(long)]
    pub restart: bool,
    /// Workers
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub workers: u32,
    /// Slots of each kind of each worker
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub slots: u32,
    /// Memory budget of one task
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub task_memory: ByteSize,
}

fn shape(text: &str) -> Result<(u32, u32), String> {
    let (maps, reduces) = text.split_once('x').unwrap_or((text, "0"));
    let number = |text: &str, most: u32| text.parse().ok().filter(|number| (0..=most).contains(number));
    match (number(maps, 9_999_999), number(reduces, 99_999)) {
        (Some(maps), Some(reduces)) if maps > 0 => Ok((maps, reduces)),
        _ => Err("write MAPS or MAPSxREDUCES, such as 100000 or 200x4000".to_owned()),
    }
}

/// Measures.
///
/// # Errors
/// When a binary is missing, a daemon or a job fails, and on an interrupt.
pub fn load(settings: &LoadSettings, session: &Session) -> Result<LoadReport, LabError> {
    let nap = nap(&session.binaries)?;
    let (work, mut guard) = guarded_folder(&session.work, ByteSize::new(64 << 20))?;
    let mut loads = Vec::new();
    if settings.jobs.is_some() || !settings.shapes.is_empty() || settings.restart {
        let slots = Slots { map: settings.slots, reduce: settings.slots };
        let layout = layout(vec![slots; settings.workers as usize]);
        let folder = work.fresh("load")?;
        let cluster = LiveCluster::start(&folder, &nap, &layout, &mut guard, session)?;
        let mut measuring = Measuring { cluster, session, folder, guard: &mut guard, settings, runs: 0 };
        measuring.all(&nap, &layout, &mut loads)?;
        measuring.cluster.stop()?;
    }
    if let Some(workers) = settings.idle_workers {
        let layout = layout(vec![Slots { map: 1, reduce: 1 }; workers as usize]);
        let folder = work.fresh("idle")?;
        session.say(format!("starting {workers} workers"));
        let cluster = LiveCluster::start(&folder, &nap, &layout, &mut guard, session)?;
        loads.push(idle(&cluster, workers, settings.time, session)?);
        cluster.stop()?;
    }
    guard.clean_up()?;
    Ok(LoadReport::new(loads))
}

fn layout(workers: Vec<Slots>) -> Layout<'static> {
    Layout { workers, heartbeat: HEARTBEAT, configuration: String::new(), confinement: None }
}

fn idle(
    cluster: &LiveCluster<'_>,
    workers: u32,
    time: Duration,
    session: &Session,
) -> Result<Load, LabError> {
    let (before, began) = (Reading::of(cluster), Instant::now());
    while began.elapsed() < time {
        session.interrupt.check()?;
        thread::sleep(LOOK);
    }
    let (wall, used) = (began.elapsed().as_secs_f64(), before.until_now(cluster));
    let what = format!("{workers} idle workers");
    Ok(Load::new(what, (0, 0), wall, &[], used))
}

struct Measuring<'s, 'g> {
    cluster: LiveCluster<'s>,
    session: &'s Session,
    folder: PathBuf,
    guard: &'g mut Guard,
    settings: &'s LoadSettings,
    runs: u32,
}

impl Measuring<'_, '_> {
    fn all(&mut self, nap: &Path, layout: &Layout<'_>, loads: &mut Vec<Load>) -> Result<(), LabError> {
        if let Some(jobs) = self.settings.jobs {
            loads.push(self.many_jobs(jobs, self.settings.clients)?);
        }
        for &(maps, reduces) in &self.settings.shapes {
            loads.push(self.one_job(maps, reduces)?);
        }
        if self.settings.restart {
            self.session.say("killing the coordinator and starting it again");
            let seconds = self.cluster.restart_coordinator(nap, layout, self.guard)?.as_secs_f64();
            let usage = DaemonUsage::of(self.cluster.coordinator);
            let (all, peak_bytes) = (usage.processor_seconds, usage.peak_bytes);
            let used = Used { all, coordinator: all, peak_bytes };
            loads.push(Load::new("restart until it answers".to_owned(), (0, 0), seconds, &[], used));
        }
        Ok(())
    }

    fn order(&mut self, job: &str, input: &Path) -> JobOrder {
        self.runs += 1;
        let name = format!("load-{}", self.runs);
        let work = Work { job: job.to_owned(), ..Work::default() };
        let output = self.folder.join(&name);
        JobOrder { task_memory: self.settings.task_memory, ..JobOrder::new(&name, work, input, &output) }
    }

    /// One map of one line each, without reduce; one after the other at each client.
    fn many_jobs(&mut self, jobs: u64, clients: u32) -> Result<Load, LabError> {
        let input = self.folder.join("line.txt");
        write(&input, "0000001\n")?;
        let clients = u64::from(clients).min(jobs.max(1));
        self.session.say(format!("{jobs} jobs from {clients} clients"));
        let (before, began) = (Reading::of(&self.cluster), Instant::now());
        let mut running = Vec::new();
        for client in 0..clients {
            let times = jobs / clients + u64::from(client < jobs % clients);
            let order = self.order("steps", &input);
            let command = order.command_of_many(&own_binary(), &self.folder.join("cluster"), times);
            let name = format!("client-{client}");
            let child = spawn(&command, &name, &self.folder)?;
            self.guard.take_process(Pid::from_child(&child))?;
            running.push((name, child));
        }
        let waited = self.wait_for_all(&mut running, began);
        for (_, child) in &mut running {
            // Nothing is left of those that have ended; the others are not wanted any more.
            let _ = child.kill();
            let _ = child.wait();
        }
        waited?;
        let wall = began.elapsed().as_secs_f64();
        let used = before.until_now(&self.cluster);
        let mut job_ms = Vec::new();
        for (name, _) in &running {
            let path = self.folder.join(format!("{name}.out"));
            let text = fs::read_to_string(&path).map_err(WorkError::using("read", &path))?;
            job_ms.extend(
                text.lines().filter_map(|line| line.trim().parse::<f64>().ok()).map(|micros| micros / 1e3),
            );
        }
        let what = format!("{jobs} jobs from {clients} clients");
        Ok(Load::new(what, (jobs, jobs), wall, &job_ms, used))
    }

    fn wait_for_all(&mut self, running: &mut [(String, Child)], began: Instant) -> Result<(), LabError> {
        let mut left = running.len();
        while left > 0 {
            left = 0;
            for (name, child) in &mut *running {
                let watch = |source| ProcessError::Watch { name: name.clone(), source };
                match child.try_wait().map_err(watch)? {
                    Some(status) if !status.success() => {
                        let last_words = last_words(&self.folder.join(format!("{name}.err")));
                        return Err(ProcessError::Failed { name: name.clone(), status, last_words }.into());
                    }
                    Some(_) => {}
                    None => left += 1,
                }
            }
            self.session.interrupt.check()?;
            if began.elapsed() > LIMIT {
                return Err(LiveClusterError::Slow { limit: LIMIT, what: format!("{left} clients") }.into());
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Every map has a record for every reduce.
    fn one_job(&mut self, maps: u32, reduces: u32) -> Result<Load, LabError> {
        let input = self.folder.join(format!("lines-{maps}-{reduces}.txt"));
        let lines = reduces.max(1);
        write_lines(&input, maps, lines, reduces > 0)?;
        let job = if reduces > 0 { "steps-of-reduces" } else { "steps" };
        let order = JobOrder {
            // A job without reduces takes no notice.
            reduces: lines,
            split_size: ByteSize::new(LINE_BYTES * u64::from(lines)),
            ..self.order(job, &input)
        };
        let what = match reduces {
            0 => format!("a job of {maps} maps"),
            _ => format!("a job of {maps} maps and {reduces} reduces"),
        };
        self.session.say(&what);
        let (before, began) = (Reading::of(&self.cluster), Instant::now());
        let job = self.cluster.submit(&order)?;
        self.cluster.wait_for_end(job, LIMIT)?;
        let (wall, used) = (began.elapsed().as_secs_f64(), before.until_now(&self.cluster));
        let tasks = u64::from(maps) + u64::from(reduces);
        Ok(Load::new(what, (1, tasks), wall, &[], used))
    }
}

/// So many lines for each map: the number of a partition and of its groups, or of a step.
fn write_lines(path: &Path, maps: u32, lines: u32, partitions: bool) -> Result<(), LabError> {
    let failed = WorkError::using("write", path);
    let file = fs::File::create(path).map_err(failed)?;
    let mut file = std::io::BufWriter::new(file);
    for map in 0..maps {
        for line in 0..lines {
            let written = match partitions {
                true => writeln!(file, "{line:05} 1"),
                false => writeln!(file, "{map:07}"),
            };
            written.map_err(failed)?;
        }
    }
    file.flush().map_err(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_an_input_is_as_long_as_a_split_expects() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lines");
        for (partitions, expected) in [(true, "00000 1\n00001 1\n"), (false, "0000000\n0000000\n")] {
            write_lines(&path, 3, 2, partitions).expect("written");
            let text = fs::read_to_string(&path).expect("read");
            assert_eq!(text.len() as u64, 6 * LINE_BYTES);
            assert!(text.starts_with(expected), "{text}");
        }
    }
}
