//! Metrics for Prometheus in the OpenMetrics 1.0 text format.
//!
//! Gauges are read from the source at scrape time. No label contains a job, task or user: the number of
//! series must not grow with the number of jobs.

pub mod plain;
mod queues;
mod workers;

use std::sync::atomic::AtomicU64;

use napreduce_answers::{SlotsInUse, StatusAnswer, WarningAnswer};
use napreduce_engine::TaskKind;
use napreduce_protocol::{JobPhase, JobSummary, PhaseProgress, WorkerPhase, WorkerSummary};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::table::all_routes;
use crate::context::Web;
use crate::labels::{Labels, label};
use crate::problem::Problem;
use crate::source::{PageSource, SourceError};

pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Gauges = Family<Labels, Gauge<i64>>;

/// Returns the values at this moment.
pub fn text(web: &Web) -> Result<String, Problem> {
    let source = &*web.shown.source;
    web.tally.count(source)?;
    let workers = source.workers()?;
    let jobs = source.jobs()?;
    let mut status = StatusAnswer::of(&workers, &jobs, |_| Ok::<_, SourceError>(Vec::new()))?;
    status.warnings.extend(disk_warning(source));
    let mut registry = Registry::with_prefix("napreduce");
    gauges(
        &mut registry,
        "build_info",
        "The version of the web server",
        &[(&[("version", env!("CARGO_PKG_VERSION"))], 1)],
    );
    let started: Gauge<i64> = Gauge::default();
    started.set(i64::try_from(web.tally.started_millis() / 1_000).unwrap_or(i64::MAX));
    let help = "Start time of the web server, Unix time";
    registry.register_with_unit("start_time", help, Unit::Seconds, started);
    cluster(&mut registry, &status);
    states(&mut registry, &jobs, &workers);
    warnings(&mut registry, &status.warnings);
    tasks(&mut registry, &jobs);
    workers::register(&mut registry, &workers);
    queues::register(&mut registry, &*source.queues()?);
    web.tally.register(&mut registry);
    let requests: Family<Labels, Counter<u64, AtomicU64>> = Family::default();
    for (route, count) in all_routes().zip(web.calls.iter()) {
        requests
            .get_or_create(&label("route", route.path))
            .inc_by(count);
    }
    registry.register("http_requests", "Accepted requests by route", requests);
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| {
        let detail = format!("cannot encode the metrics: {error}");
        Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, detail)
    })?;
    Ok(sort_series(&text))
}

/// Sorts the series of each metric by their labels, because a family is a hash map without a fixed order. The sort
/// is stable and ignores `le`, so the buckets of a histogram stay in order.
fn sort_series(text: &str) -> String {
    let mut sorted = String::with_capacity(text.len());
    let mut series: Vec<&str> = Vec::new();
    for line in text.lines() {
        if !line.starts_with('#') {
            series.push(line);
            continue;
        }
        series.sort_by_key(|line| labels_without_bucket(line));
        for line in series.drain(..).chain([line]) {
            sorted.push_str(line);
            sorted.push('\n');
        }
    }
    sorted
}

/// Returns the labels of a series without `le`.
fn labels_without_bucket(line: &str) -> String {
    let Some((_, labels)) = line.split_once('{') else {
        return String::new();
    };
    let Some((labels, _)) = labels.rsplit_once('}') else {
        return String::new();
    };
    let others = labels
        .split(',')
        .filter(|label| !label.starts_with("le=\""));
    others.collect::<Vec<_>>().join(",")
}

/// Only while the cluster runs: nothing is written to a finished history.
pub fn disk_warning(source: &dyn PageSource) -> Option<WarningAnswer> {
    source
        .history()
        .filter(|_| source.is_live())
        .and_then(WarningAnswer::of_disk)
}

fn cluster(registry: &mut Registry, status: &StatusAnswer) {
    let mut of_kinds = |name: &str, help: &str, of: fn(&SlotsInUse) -> u64| {
        let map = &[("kind", "map")][..];
        let reduce = &[("kind", "reduce")][..];
        gauges(
            registry,
            name,
            help,
            &[(map, of(&status.map)), (reduce, of(&status.reduce))],
        );
    };
    of_kinds("slots", "Slots of present workers", |slots| slots.slots);
    of_kinds("slots_used", "Slots in use", |slots| slots.used);
    of_kinds(
        "suspended_attempts",
        "Attempts that released their slot but keep their memory",
        |slots| slots.suspended,
    );
    let checkpointed = [(&[][..], status.checkpointed)];
    gauges(
        registry,
        "checkpointed_tasks",
        "Tasks that wait with a checkpoint",
        &checkpointed,
    );
}

fn states(registry: &mut Registry, jobs: &[JobSummary], workers: &[WorkerSummary]) {
    use WorkerPhase::{Draining, Excluded, Leaving, Lost, Up};
    let count = |phase| jobs.iter().filter(|job| job.phase == phase).count() as u64;
    let by_state = JobPhase::ALL.map(|phase| ([("state", phase.in_words())], count(phase)));
    let by_state = by_state
        .each_ref()
        .map(|(labels, value)| (&labels[..], *value));
    gauges(
        registry,
        "jobs",
        "Jobs by state; ended jobs as far as the history reaches",
        &by_state,
    );
    let there = [Up, Excluded, Draining, Leaving, Lost];
    let count = |state| {
        workers
            .iter()
            .filter(|worker| worker.state == state)
            .count() as u64
    };
    let by_state = there.map(|state| ([("state", state.in_words())], count(state)));
    let by_state = by_state
        .each_ref()
        .map(|(labels, value)| (&labels[..], *value));
    gauges(registry, "workers", "Workers by state", &by_state);
}

fn warnings(registry: &mut Registry, warnings: &[WarningAnswer]) {
    let count = |code| {
        warnings
            .iter()
            .filter(|warning| warning.code == code)
            .count() as u64
    };
    let by_code = WarningAnswer::CODES.map(|code| ([("code", code)], count(code)));
    let by_code = by_code
        .each_ref()
        .map(|(labels, value)| (&labels[..], *value));
    gauges(registry, "warnings", "Warnings by kind", &by_code);
}

/// Counts the tasks of jobs that have not ended.
fn tasks(registry: &mut Registry, jobs: &[JobSummary]) {
    let family = Gauges::default();
    let open: Vec<&JobSummary> = jobs
        .iter()
        .filter(|job| job.ended_millis.is_none())
        .collect();
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
        let waiting =
            (sum(|phase| phase.tasks) - begun.iter().map(|(_, count)| count).sum::<i64>()).max(0);
        for (state, count) in begun.into_iter().chain([("waiting", waiting)]) {
            let labels = vec![("kind", kind.to_string().into()), ("state", state.into())];
            family.get_or_create(&labels).set(count);
        }
    }
    registry.register(
        "tasks",
        "Tasks of jobs that have not ended, by state",
        family,
    );
}

fn gauges(
    registry: &mut Registry,
    name: &str,
    help: &str,
    values: &[(&[(&'static str, &str)], u64)],
) {
    let family = Gauges::default();
    for (labels, value) in values {
        let labels = labels
            .iter()
            .map(|(name, value)| (*name, (*value).into()))
            .collect();
        family
            .get_or_create(&labels)
            .set(i64::try_from(*value).unwrap_or(i64::MAX));
    }
    registry.register(name, help, family);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_series_orders_labels_and_keeps_buckets() {
        let text = "# TYPE a counter\na_total{k=\"2\"} 1\na_total{k=\"1\"} 2\n# TYPE h histogram\n\
                    h_sum{k=\"b\"} 1\nh_bucket{le=\"0.5\",k=\"b\"} 1\nh_bucket{le=\"+Inf\",k=\"b\"} 1\n\
                    h_sum{k=\"a\"} 1\nh_bucket{le=\"0.5\",k=\"a\"} 1\nh_bucket{le=\"+Inf\",k=\"a\"} 1\n# EOF\n";
        let sorted = "# TYPE a counter\na_total{k=\"1\"} 2\na_total{k=\"2\"} 1\n# TYPE h histogram\n\
                      h_sum{k=\"a\"} 1\nh_bucket{le=\"0.5\",k=\"a\"} 1\nh_bucket{le=\"+Inf\",k=\"a\"} 1\n\
                      h_sum{k=\"b\"} 1\nh_bucket{le=\"0.5\",k=\"b\"} 1\nh_bucket{le=\"+Inf\",k=\"b\"} 1\n# EOF\n";
        assert_eq!(sort_series(text), sorted);
        let text = "# TYPE a gauge\na{k=\"x,le=\\\"}\"} 1\na{k=\"x,\\\"a\"} 2\n# EOF\n";
        let sorted = "# TYPE a gauge\na{k=\"x,\\\"a\"} 2\na{k=\"x,le=\\\"}\"} 1\n# EOF\n";
        assert_eq!(sort_series(text), sorted);
    }
}
