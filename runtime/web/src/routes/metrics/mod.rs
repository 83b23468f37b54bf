//! Metrics for Prometheus in the OpenMetrics 1.0 text format.
//!
//! Gauges are read from the source at scrape time. No label contains a job, task or user: the number of
//! series must not grow with the number of jobs.

pub mod plain;
mod queues;
mod workers;

use std::sync::atomic::AtomicU64;

use napreduce_engine::TaskKind;
use napreduce_protocol::{JobPhase, JobSummary, PhaseProgress, WorkerPhase, WorkerSummary};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::table::all_routes;
use crate::answers::{SlotsInUse, StatusAnswer, WarningAnswer};
use crate::context::Web;
use crate::problem::Problem;
use crate::source::{PageSource, SourceError};
use crate::tally::Labels;

pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Gauges = Family<Labels, Gauge<i64>>;

/// Returns the values at this moment.
pub fn text(web: &Web) -> Result<String, Problem> {
    let source = &*web.shown.source;
    web.tally.count(source)?;
    let (workers, jobs) = (source.workers()?, source.jobs()?);
    let mut status = StatusAnswer::of(&workers, &jobs, |_| Ok::<_, SourceError>(Vec::new()))?;
    status.warnings.extend(disk_warning(source));
    let mut registry = Registry::with_prefix("napreduce");
    gauges(
        &mut registry,
        "build_info",
        "The version of the web server",
        &[(&[("version", env!("CARGO_PKG_VERSION"))], 1)],
    );
    let started = [(&[][..], web.tally.started_millis() / 1_000)];
    gauges(&mut registry, "start_time_seconds", "Start time of the web server, Unix time", &started);
    cluster(&mut registry, &status);
    states(&mut registry, &jobs, &workers);
    warnings(&mut registry, &status.warnings);
    tasks(&mut registry, &jobs);
    workers::register(&mut registry, &workers);
    queues::register(&mut registry, &*source.queues()?);
    web.tally.register(&mut registry);
    let requests: Family<Labels, Counter<u64, AtomicU64>> = Family::default();
    for (route, count) in all_routes().zip(web.calls.iter()) {
        requests.get_or_create(&vec![("route", route.path.to_owned())]).inc_by(count);
    }
    registry.register("http_requests", "Accepted requests by route", requests);
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| {
        let detail = format!("cannot encode the metrics: {error}");
        Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, detail)
    })?;
    Ok(text)
}

/// Only while the cluster runs: nothing is written to a finished history.
pub fn disk_warning(source: &dyn PageSource) -> Option<WarningAnswer> {
    source.history().filter(|_| source.is_live()).and_then(WarningAnswer::of_disk)
}

fn cluster(registry: &mut Registry, status: &StatusAnswer) {
    let mut of_kinds = |name: &str, help: &str, of: fn(&SlotsInUse) -> u64| {
        let (map, reduce) = (&[("kind", "map")][..], &[("kind", "reduce")][..]);
        gauges(registry, name, help, &[(map, of(&status.map)), (reduce, of(&status.reduce))]);
    };
    of_kinds("slots", "Slots of present workers", |slots| slots.slots);
    of_kinds("slots_used", "Slots in use", |slots| slots.used);
    of_kinds("suspended_attempts", "Attempts that released their slot but keep their memory", |slots| {
        slots.suspended
    });
    let checkpointed = [(&[][..], status.checkpointed)];
    gauges(registry, "checkpointed_tasks", "Tasks that wait with a checkpoint", &checkpointed);
}

fn states(registry: &mut Registry, jobs: &[JobSummary], workers: &[WorkerSummary]) {
    use WorkerPhase::{Draining, Excluded, Leaving, Lost, Up};
    let count = |phase| jobs.iter().filter(|job| job.phase == phase).count() as u64;
    let by_state = JobPhase::ALL.map(|phase| ([("state", phase.in_words())], count(phase)));
    let by_state = by_state.each_ref().map(|(labels, value)| (&labels[..], *value));
    gauges(registry, "jobs", "Jobs by state; ended jobs as far as the history reaches", &by_state);
    let there = [Up, Excluded, Draining, Leaving, Lost];
    let count = |state| workers.iter().filter(|worker| worker.state == state).count() as u64;
    let by_state = there.map(|state| ([("state", state.in_words())], count(state)));
    let by_state = by_state.each_ref().map(|(labels, value)| (&labels[..], *value));
    gauges(registry, "workers", "Workers by state", &by_state);
}

fn warnings(registry: &mut Registry, warnings: &[WarningAnswer]) {
    let count = |code| warnings.iter().filter(|warning| warning.code == code).count() as u64;
    let by_code = WarningAnswer::CODES.map(|code| ([("code", code)], count(code)));
    let by_code = by_code.each_ref().map(|(labels, value)| (&labels[..], *value));
    gauges(registry, "warnings", "Warnings by kind", &by_code);
}

/// Counts the tasks of jobs that have not ended.
fn tasks(registry: &mut Registry, jobs: &[JobSummary]) {
    let family = Gauges::default();
    let open: Vec<&JobSummary> = jobs.iter().filter(|job| job.ended_millis.is_none()).collect();
    for kind in TaskKind::ALL {
        let of_kind = |job: &&JobSummary| match kind {
            TaskKind::Map => job.progress.map,
            TaskKind::Reduce => job.progress.reduce,
        };
        let sum = |of: fn(&PhaseProgress) -> u32| -> i64 {
            open.iter().map(|job| i64::from(of(&of_kind(job)))).sum()
        };
        let begun = [
            ("succeeded", sum(|phase| phase.done)),
            ("running", sum(|phase| phase.running)),
            ("suspended", sum(|phase| phase.suspended)),
            ("checkpointed", sum(|phase| phase.checkpointed)),
        ];
        // Two attempts of a task may run at once.
        let waiting = (sum(|phase| phase.tasks) - begun.iter().map(|(_, count)| count).sum::<i64>()).max(0);
        for (state, count) in begun.into_iter().chain([("waiting", waiting)]) {
            let labels = vec![("kind", kind.to_string()), ("state", state.to_owned())];
            family.get_or_create(&labels).set(count);
        }
    }
    registry.register("tasks", "Tasks of jobs that have not ended, by state", family);
}

fn gauges(registry: &mut Registry, name: &str, help: &str, values: &[(&[(&'static str, &str)], u64)]) {
    let family = Gauges::default();
    for (labels, value) in values {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        family.get_or_create(&labels).set(i64::try_from(*value).unwrap_or(i64::MAX));
    }
    registry.register(name, help, family);
}
