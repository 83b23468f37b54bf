//! Output of a program at the end of a job, as text or JSON.

use std::process::ExitCode;

use napreduce_engine::JobId;
use napreduce_protocol::printing::{print, print_error};
use napreduce_protocol::{JobReport, several_lines};
use serde_json::{Map, Value, json};

use super::error::Error;
use super::options::ReportFormat;

/// Prints the report of a successful job: counters, wall time and output as text, or one line of JSON on
/// standard output.
pub(crate) fn success(report: &JobReport, format: ReportFormat, quiet: bool) {
    match format {
        ReportFormat::Text if quiet => {}
        ReportFormat::Text => print_error(text(report).trim_end()),
        ReportFormat::Json => print(format_args!("{}\n", json_object(report))),
    }
}

/// Prints the error that ended a driver. For a detached job, its id was already printed; the rest is
/// informative.
pub(crate) fn ending(
    name: &str,
    error: &(dyn std::error::Error + 'static),
    quiet: bool,
) -> ExitCode {
    match error.downcast_ref::<Error>() {
        Some(Error::Detached { .. }) if quiet => ExitCode::SUCCESS,
        _ => failure(name, error),
    }
}

/// Prints the id of a detached job.
pub(crate) fn detached(job: JobId) {
    print(format_args!("{job}\n"));
}

/// Prints the error of the program and returns its exit status.
pub(crate) fn failure(name: &str, error: &(dyn std::error::Error + 'static)) -> ExitCode {
    print_error(format_args!(
        "{name}: {}",
        several_lines(&error.to_string())
    ));
    ExitCode::from(error.downcast_ref::<Error>().map_or(1, Error::exit_status))
}

fn text(report: &JobReport) -> String {
    let mut text = String::new();
    let width = report
        .counters
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    for (name, value) in report.counters.iter() {
        text.push_str(&format!("  {:<width$}  {value:>15}\n", several_lines(name)));
    }
    text.push_str(&format!(
        "{} {} succeeded in {:.3} s; output in {}\n",
        report.job,
        several_lines(&report.name),
        report.wall.as_secs_f64(),
        several_lines(&report.output.display().to_string())
    ));
    text
}

fn json_object(report: &JobReport) -> Value {
    let counters: Map<String, Value> = report
        .counters
        .iter()
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let parts: Vec<Value> = report
        .parts
        .iter()
        .map(|part| {
            json!({
                "name": part.name,
                "records": part.records,
                "bytes": part.bytes,
                "digest": format!("{:016x}", part.digest),
            })
        })
        .collect();
    json!({
        "job": report.job.to_string(),
        "name": report.name,
        "outcome": "succeeded",
        "wall_seconds": report.wall.as_secs_f64(),
        "output": report.output.display().to_string(),
        "counters": counters,
        "parts": parts,
    })
}
