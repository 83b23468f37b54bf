//! Chrome trace JSON of jobs, for Perfetto and `chrome://tracing`: a process per worker with a thread per slot,
//! and one process for the jobs. The format is the "Trace Event Format" of the authors of Chrome's tracing.

use std::collections::BTreeMap;
use std::io::{self, Write};

use napreduce_engine::{JobId, WorkerId};
use napreduce_protocol::{JobDetail, PreemptionSummary};
use serde_json::{Value, json};

use crate::files::timeline::{Lane, Nap, Stint, StintEnd, Timeline, assign_lanes};

/// The process of the jobs; workers follow it.
const JOBS: u64 = 0;
/// Threads of reduce slots follow those of map slots.
const FIRST_REDUCE: u64 = 1_000_000;
/// Length of an event's name; the arguments have the whole text.
const NAME_CHARACTERS: usize = 60;

/// Counts of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceFigures {
    pub stints: u64,
    pub naps: u64,
}

/// Writes a trace of jobs. Open stints and naps extend to `now_micros`, in microseconds since 1970.
///
/// # Errors
/// Fails if `out` cannot be written.
pub fn write_trace(
    jobs: &[JobDetail],
    now_micros: u64,
    out: &mut impl Write,
) -> io::Result<TraceFigures> {
    let base = jobs
        .iter()
        .map(|job| job.summary.submitted_millis * 1_000)
        .min()
        .unwrap_or(0);
    let mut stints = Vec::new();
    let mut naps = Vec::new();
    for job in jobs {
        let timeline = Timeline::new(job, now_micros);
        stints.extend(timeline.stints);
        naps.extend(timeline.naps);
    }
    let placed = assign_lanes(stints);
    let figures = TraceFigures {
        stints: placed.len() as u64,
        naps: naps.len() as u64,
    };
    let head = json!({ "base_micros": base, "stints": figures.stints, "naps": figures.naps });
    write!(
        out,
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{head},\"traceEvents\":["
    )?;
    let mut trace = Trace {
        out,
        base,
        is_first: true,
    };
    trace.names(jobs, &placed, &naps)?;
    for job in jobs {
        trace.job(job, now_micros)?;
    }
    for (lane, stint) in &placed {
        trace.stint(*lane, stint)?;
    }
    for nap in &naps {
        trace.nap(nap)?;
    }
    trace.suspended_bytes(&naps)?;
    trace.out.write_all(b"\n]}\n")?;
    Ok(figures)
}

struct Trace<'out, W> {
    out: &'out mut W,
    base: u64,
    is_first: bool,
}

impl<W: Write> Trace<'_, W> {
    fn event(&mut self, event: &Value) -> io::Result<()> {
        let between: &[u8] = if self.is_first { b"\n" } else { b",\n" };
        self.is_first = false;
        self.out.write_all(between)?;
        serde_json::to_writer(&mut *self.out, event).map_err(io::Error::from)
    }

    fn at(&self, micros: u64) -> u64 {
        micros.saturating_sub(self.base)
    }

    fn names(
        &mut self,
        jobs: &[JobDetail],
        placed: &[(Lane, Stint<'_>)],
        naps: &[Nap<'_>],
    ) -> io::Result<()> {
        let mut workers: BTreeMap<WorkerId, &str> =
            naps.iter().map(|nap| (nap.worker, "")).collect();
        let named = jobs.iter().flat_map(|job| &job.attempts);
        workers.extend(named.map(|attempt| (attempt.worker, attempt.worker_name.as_str())));
        self.name("process_name", JOBS, None, "jobs")?;
        for job in jobs {
            let name = &job.summary.name;
            let job = job.summary.job;
            self.name(
                "thread_name",
                JOBS,
                Some(u64::from(job.0)),
                &format!("{job} {name}"),
            )?;
        }
        for (worker, name) in workers {
            self.name(
                "process_name",
                process(worker),
                None,
                format!("{worker} {name}").trim_end(),
            )?;
        }
        let mut lanes: Vec<Lane> = placed.iter().map(|(lane, _)| *lane).collect();
        lanes.sort_unstable();
        lanes.dedup();
        for lane in lanes {
            let kind = if lane.is_reduce { "reduce" } else { "map" };
            let name = format!("{kind} slot {}", lane.number + 1);
            self.name(
                "thread_name",
                process(lane.worker),
                Some(thread(lane)),
                &name,
            )?;
        }
        Ok(())
    }

    fn name(
        &mut self,
        what: &str,
        process: u64,
        thread: Option<u64>,
        name: &str,
    ) -> io::Result<()> {
        let mut event =
            json!({ "ph": "M", "name": what, "pid": process, "args": { "name": name } });
        if let Some(thread) = thread {
            event["tid"] = json!(thread);
        }
        self.event(&event)
    }

    /// Writes the job from submission to end, and its events.
    fn job(&mut self, job: &JobDetail, now_micros: u64) -> io::Result<()> {
        let summary = &job.summary;
        let from = self.at(summary.submitted_millis * 1_000);
        let until = self
            .at(summary
                .ended_millis
                .map_or(now_micros, |ended| ended * 1_000))
            .max(from);
        let thread = thread_of(summary.job);
        self.event(&json!({
            "ph": "X", "cat": "job", "name": summary.job.to_string(), "pid": JOBS, "tid": thread,
            "ts": from, "dur": until - from,
            "args": {
                "name": summary.name, "user": summary.user, "queue": summary.queue, "priority": summary.priority,
                "state": summary.phase.in_words(), "reason": summary.reason,
            },
        }))?;
        for line in &job.events {
            let name: String = line.text.chars().take(NAME_CHARACTERS).collect();
            self.event(&json!({
                "ph": "i", "s": "t", "cat": "event", "name": name, "pid": JOBS, "tid": thread,
                "ts": self.at(line.at_millis * 1_000), "args": { "text": line.text },
            }))?;
        }
        Ok(())
    }

    fn stint(&mut self, lane: Lane, stint: &Stint<'_>) -> io::Result<()> {
        let end = match stint.end {
            StintEnd::Open => "running",
            StintEnd::Suspended => "suspended",
            StintEnd::Checkpointed => "checkpointed",
            StintEnd::Killed => "killed",
            StintEnd::Ended => stint.end_text.unwrap_or("ended"),
        };
        let mut arguments = json!({ "job": stint.attempt.task.job.to_string(), "end": end });
        if let Some(restore) = stint.restore {
            arguments["restored_from"] = json!(restore.from.to_string());
        }
        if let Some(preemption) = stint.preemption {
            add_preemption(&mut arguments, preemption);
        }
        self.event(&json!({
            "ph": "X", "cat": "stint", "name": stint.attempt.to_string(), "pid": process(lane.worker),
            "tid": thread(lane), "ts": self.at(stint.from_micros), "dur": stint.until_micros - stint.from_micros,
            "args": arguments,
        }))
    }

    fn nap(&mut self, nap: &Nap<'_>) -> io::Result<()> {
        let name = if nap.is_suspended() {
            "suspended"
        } else {
            "checkpointed"
        };
        let mut begin = json!({
            "ph": "b", "cat": "nap", "id": nap.attempt.to_string(), "name": name, "pid": process(nap.worker),
            "tid": 0, "ts": self.at(nap.from_micros), "args": {},
        });
        add_preemption(&mut begin["args"], nap.preemption);
        self.event(&begin)?;
        self.event(&json!({
            "ph": "e", "cat": "nap", "id": nap.attempt.to_string(), "name": name, "pid": process(nap.worker),
            "tid": 0, "ts": self.at(nap.until_micros),
        }))
    }

    /// Writes the memory of suspended attempts per worker, as of their suspension.
    fn suspended_bytes(&mut self, naps: &[Nap<'_>]) -> io::Result<()> {
        let mut changes: Vec<(WorkerId, u64, i128)> = Vec::new();
        for nap in naps.iter().filter(|nap| nap.is_suspended()) {
            let bytes = i128::from(nap.preemption.resident_bytes);
            changes.extend([
                (nap.worker, nap.from_micros, bytes),
                (nap.worker, nap.until_micros, -bytes),
            ]);
        }
        changes.sort_unstable();
        let mut held: BTreeMap<WorkerId, i128> = BTreeMap::new();
        for (worker, at, change) in changes {
            let bytes = held.entry(worker).or_default();
            *bytes += change;
            let bytes = u64::try_from(*bytes).unwrap_or(0);
            self.event(&json!({
                "ph": "C", "name": "suspended bytes", "pid": process(worker), "ts": self.at(at),
                "args": { "bytes": bytes },
            }))?;
        }
        Ok(())
    }
}

fn add_preemption(arguments: &mut Value, preemption: &PreemptionSummary) {
    arguments["by"] = json!(preemption.by);
    arguments["reason"] = json!(preemption.reason);
    arguments["beneficiary"] = json!(preemption.beneficiary.map(|job| job.to_string()));
    arguments["work_saved_millis"] = json!(preemption.work_saved_millis);
    arguments["work_lost_millis"] = json!(preemption.work_lost_millis);
}

fn process(worker: WorkerId) -> u64 {
    JOBS + 1 + u64::from(worker.0)
}

fn thread_of(job: JobId) -> u64 {
    u64::from(job.0)
}

fn thread(lane: Lane) -> u64 {
    let first = if lane.is_reduce { FIRST_REDUCE } else { 1 };
    first + u64::from(lane.number)
}
