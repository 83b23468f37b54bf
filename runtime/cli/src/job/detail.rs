//! Everything about one job: status, counters, history.
//!
//! Owns their two forms. Does not own which jobs are shown.

use napreduce_live::{AttemptSummary, JobDetail, one_line, several_lines};
use serde_json::{Map, Value, json};

use super::{listing, preemptions};
use crate::format::{moment, or_dash, span};

/// Columns that a name may take.
const NAME_COLUMNS_MAX: usize = 200;

fn title(detail: &JobDetail) -> String {
    format!("{} {}\n", detail.summary.job, one_line(&detail.summary.name, NAME_COLUMNS_MAX))
}

pub fn status(detail: &JobDetail) -> String {
    let job = &detail.summary;
    let mut text = title(detail);
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<10} {value}\n"));
    line("state", listing::phase_name(job.phase).to_owned());
    if let Some(reason) = &job.reason {
        line("reason", several_lines(reason).replace('\n', "\n             "));
    }
    line("user", several_lines(&job.user));
    line("queue", format!("{}, priority {}", several_lines(&job.queue), job.priority));
    line("maps", listing::phase_text(&job.progress.map));
    line("reduces", listing::phase_text(&job.progress.reduce));
    line("submitted", moment(job.submitted_millis));
    line("ended", or_dash(job.ended_millis.map(moment)));
    line("took", or_dash(listing::took_millis(job).map(span)));
    line("output", several_lines(&job.output.display().to_string()));
    if !detail.parts.is_empty() {
        let records: u64 = detail.parts.iter().map(|part| part.records).sum();
        let bytes: u64 = detail.parts.iter().map(|part| part.bytes).sum();
        line("parts", format!("{}, {records} records, {bytes} bytes", detail.parts.len()));
    }
    text
}

pub fn status_json(detail: &JobDetail) -> Value {
    let parts = detail.parts.iter().map(|part| {
        json!({
            "name": part.name,
            "records": part.records,
            "bytes": part.bytes,
            "digest": format!("{:016x}", part.digest),
        })
    });
    let parts = parts.collect();
    with(detail, "parts", parts)
}

pub fn counters(detail: &JobDetail) -> String {
    let mut text = title(detail);
    let width = detail.counters.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in detail.counters.iter() {
        text.push_str(&format!("  {:<width$}  {value:>15}\n", one_line(name, NAME_COLUMNS_MAX)));
    }
    text
}

pub fn counters_json(detail: &JobDetail) -> Value {
    let counters: Map<String, Value> =
        detail.counters.iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    json!({ "job": detail.summary.job.to_string(), "counters": counters })
}

/// Events and attempts in the order of their time.
pub fn history(detail: &JobDetail) -> String {
    let mut lines: Vec<(u64, String)> =
        detail.events.iter().map(|event| (event.at_millis, event.text.clone())).collect();
    for attempt in &detail.attempts {
        let AttemptSummary { attempt, worker, worker_name, launched_millis, ended_millis, end } = attempt;
        lines.push((*launched_millis, format!("{attempt} launched on {worker} ({worker_name})")));
        if let Some(ended) = ended_millis {
            let after = span(ended.saturating_sub(*launched_millis));
            let end = end.as_deref().unwrap_or("ended");
            lines.push((*ended, format!("{attempt} {end} after {after}")));
        }
    }
    // Stable, so that what happened at one time stays in its order.
    lines.sort_by_key(|(at, _)| *at);
    let mut text = title(detail);
    for (at, line) in lines {
        let line = several_lines(&line);
        text.push_str(&format!("  {}  {}\n", moment(at), line.replace('\n', "\n                        ")));
    }
    text
}

pub fn history_json(detail: &JobDetail) -> Value {
    let attempts = detail.attempts.iter().map(|attempt| {
        json!({
            "attempt": attempt.attempt.to_string(),
            "worker": attempt.worker.to_string(),
            "worker_name": attempt.worker_name,
            "launched_millis": attempt.launched_millis,
            "ended_millis": attempt.ended_millis,
            "end": attempt.end,
        })
    });
    let events =
        detail.events.iter().map(|event| json!({ "at_millis": event.at_millis, "text": event.text }));
    json!({
        "job": detail.summary.job.to_string(),
        "events": events.collect::<Value>(),
        "attempts": attempts.collect::<Value>(),
        "preemptions": detail.preemptions.iter().map(preemptions::preemption).collect::<Value>(),
        "resumes": detail.resumes.iter().map(preemptions::resume).collect::<Value>(),
        "restores": detail.restores.iter().map(preemptions::restore).collect::<Value>(),
    })
}

/// The object of a listing and one field more.
fn with(detail: &JobDetail, name: &str, value: Value) -> Value {
    let mut object = listing::json(&detail.summary);
    object[name] = value;
    object
}

#[cfg(test)]
mod tests {
    use napreduce_core::{AttemptId, TaskId, TaskKind, WorkerId};
    use napreduce_live::{CounterValues, HistoryLine, PartReport};

    use super::*;

    fn detail() -> JobDetail {
        let summary = listing::tests::summary();
        let mut counters = CounterValues::default();
        counters.add("MAP_INPUT_RECORDS", 12);
        counters.add("bad rows", 3);
        let task = TaskId { job: summary.job, kind: TaskKind::Map, index: 3 };
        let attempt = AttemptSummary {
            attempt: AttemptId { task, number: 1 },
            worker: WorkerId(2),
            worker_name: "left-hand".to_owned(),
            launched_millis: 1_790_000_000_100,
            ended_millis: Some(1_790_000_001_300),
            end: Some("failed: bad row".to_owned()),
        };
        let event = |at_millis, text: &str| HistoryLine { at_millis, text: text.to_owned() };
        let events = vec![event(1_790_000_000_000, "submitted"), event(1_790_000_001_500, "failed")];
        let parts = vec![PartReport { name: "part-r-00000".to_owned(), records: 2, bytes: 9, digest: 255 }];
        JobDetail {
            summary,
            counters,
            parts,
            attempts: vec![attempt],
            events,
            preemptions: Vec::new(),
            resumes: Vec::new(),
            restores: Vec::new(),
        }
    }

    #[test]
    fn a_status_says_what_there_is_to_say() {
        assert_eq!(
            status(&detail()),
            "job_0007 wordcount\n  state      failed\n  reason     job_0007_m_0003 failed 4 times\n  user       ada\n  \
             queue      default, priority 0\n  maps       3/4 75%\n  reduces    -\n  \
             submitted  2026-09-21T14:13:20Z\n  ended      2026-09-21T14:13:21Z\n  took       1.5 s\n  \
             output     /data/out\n  parts      1, 2 records, 9 bytes\n"
        );
        let parts = &status_json(&detail())["parts"];
        assert_eq!(
            parts.to_string(),
            r#"[{"bytes":9,"digest":"00000000000000ff","name":"part-r-00000","records":2}]"#
        );
    }

    #[test]
    fn what_others_have_written_is_escaped_and_json_has_it_as_it_is() {
        let mut detail = detail();
        let evil = "a\u{1b}[2J\u{202e}\rb";
        (detail.summary.name, detail.summary.user) = (evil.to_owned(), format!("{evil}\nroot"));
        (detail.summary.queue, detail.summary.reason) = (evil.to_owned(), Some(evil.to_owned()));
        detail.summary.output = evil.into();
        detail.events[0].text = evil.to_owned();
        detail.attempts[0].end = Some(evil.to_owned());
        detail.counters.add(evil, 1);
        for text in [status(&detail), counters(&detail), history(&detail)] {
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']), "{text}");
            assert!(text.contains("a\\u{1b}[2J"), "{text}");
        }
        assert_eq!(status_json(&detail)["name"], evil);
        assert_eq!(history_json(&detail)["events"][0]["text"], evil);
    }

    #[test]
    fn counters_stand_below_each_other() {
        assert_eq!(
            counters(&detail()),
            "job_0007 wordcount\n  MAP_INPUT_RECORDS               12\n  bad rows                         3\n"
        );
        assert_eq!(
            counters_json(&detail()).to_string(),
            r#"{"counters":{"MAP_INPUT_RECORDS":12,"bad rows":3},"job":"job_0007"}"#
        );
    }

    #[test]
    fn a_history_is_in_order() {
        assert_eq!(
            history(&detail()),
            "job_0007 wordcount\n  \
             2026-09-21T14:13:20Z  submitted\n  \
             2026-09-21T14:13:20Z  job_0007_m_0003.1 launched on worker_0002 (left-hand)\n  \
             2026-09-21T14:13:21Z  job_0007_m_0003.1 failed: bad row after 1.2 s\n  \
             2026-09-21T14:13:21Z  failed\n"
        );
        let json = history_json(&detail());
        assert_eq!(json["attempts"][0]["end"], "failed: bad row");
        assert_eq!(json["events"][1]["at_millis"], 1_790_000_001_500_u64);
    }
}
