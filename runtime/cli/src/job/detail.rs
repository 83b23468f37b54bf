//! The details of one job: status, counters, history.

use napreduce_answers::{SubmittedAnswer, TimeLeftAnswer};
use napreduce_history::{ENDED, ENDING};
use napreduce_protocol::{AttemptSummary, JobDetail, one_line, several_lines};
use napreduce_web::clock::now_millis;
use unicode_width::UnicodeWidthStr;

use super::listing;
use crate::format::{or_dash, span};
use crate::screen::Screen;

/// Maximum columns of a name.
const NAME_COLUMNS_MAX: usize = 200;

fn title(detail: &JobDetail) -> String {
    format!(
        "{} {}\n",
        detail.summary.job,
        one_line(&detail.summary.name, NAME_COLUMNS_MAX)
    )
}

/// Formats an estimate with its range, such as `about 2 min 5 s (1 min 40 s to 3 min 0 s)`; without a range that
/// says no more.
fn left_text(left: TimeLeftAnswer) -> String {
    let least = span(left.least_millis);
    let most = span(left.most_millis);
    let likely = listing::left_text(left);
    if least == most {
        likely
    } else {
        format!("{likely} ({least} to {most})")
    }
}

pub fn status(detail: &JobDetail, screen: &Screen) -> String {
    let job = &detail.summary;
    let mut text = title(detail);
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<10} {value}\n"));
    line("state", job.phase.in_words().to_owned());
    if let Some(reason) = &job.reason {
        line(
            "reason",
            several_lines(reason).replace('\n', "\n             "),
        );
    }
    line("user", several_lines(&job.user));
    line(
        "queue",
        format!("{}, priority {}", several_lines(&job.queue), job.priority),
    );
    line("maps", listing::phase_text(&job.progress.map));
    line("reduces", listing::phase_text(&job.progress.reduce));
    line("submitted", screen.moment(job.submitted_millis));
    line(
        "ended",
        or_dash(job.ended_millis.map(|ended| screen.moment(ended))),
    );
    match listing::took_millis(job) {
        Some(took) => line("took", span(took)),
        None => {
            line(
                "elapsed",
                span(now_millis().saturating_sub(job.submitted_millis)),
            );
            let left = job.progress.left.map(|left| left_text(left.into()));
            line(
                "left",
                left.unwrap_or_else(|| {
                    "unknown: no task has a slot, or nothing tells how long its tasks take"
                        .to_owned()
                }),
            );
        }
    }
    line("output", several_lines(&job.output.display().to_string()));
    if !detail.parts.is_empty() {
        let records: u64 = detail.parts.iter().map(|part| part.records).sum();
        let bytes: u64 = detail.parts.iter().map(|part| part.bytes).sum();
        line(
            "parts",
            format!("{}, {records} records, {bytes} bytes", detail.parts.len()),
        );
    }
    text
}

/// Formats what was submitted, with one item a line. A value that is too wide for the screen is below its name.
pub fn submitted(detail: &JobDetail, screen: &Screen) -> String {
    let rows = SubmittedAnswer::from(detail).rows();
    let width = rows.iter().map(|row| row.label.len()).max().unwrap_or(0);
    let mut text = title(detail);
    for row in rows {
        let Some(value) = row.text else { continue };
        let value = several_lines(&value);
        let label = row.label.to_lowercase();
        let longest = value.lines().map(UnicodeWidthStr::width).max().unwrap_or(0);
        if screen.fits(width + 4 + longest) {
            let indent = format!("\n{:1$}", "", width + 4);
            text.push_str(&format!(
                "  {label:<width$}  {}\n",
                value.replace('\n', &indent)
            ));
        } else {
            text.push_str(&format!(
                "  {label}\n    {}\n",
                value.replace('\n', "\n    ")
            ));
        }
    }
    text
}

pub fn counters(detail: &JobDetail, _: &Screen) -> String {
    let mut text = title(detail);
    let width = detail
        .counters
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    for (name, value) in detail.counters.iter() {
        text.push_str(&format!(
            "  {:<width$}  {value:>15}\n",
            one_line(name, NAME_COLUMNS_MAX)
        ));
    }
    text
}

/// Formats events and attempts in order of time.
pub fn history(detail: &JobDetail, screen: &Screen) -> String {
    let mut lines: Vec<(u64, String)> = detail
        .events
        .iter()
        .map(|event| (event.at_millis, event.text.clone()))
        .collect();
    for attempt in &detail.attempts {
        let AttemptSummary {
            attempt,
            worker,
            worker_name,
            launched_millis,
            ended_millis,
            end,
            ..
        } = attempt;
        lines.push((
            *launched_millis,
            format!("{attempt} launched on {worker} ({worker_name})"),
        ));
        if let Some(ended) = ended_millis {
            let after = span(ended.saturating_sub(*launched_millis));
            let end = end.as_deref().unwrap_or("ended");
            lines.push((*ended, format!("{attempt} {end} after {after}")));
        }
    }
    let is_end = |line: &str| line.starts_with(ENDING) || line.starts_with(ENDED);
    // Stable, so that events of one time stay in their order.
    lines.sort_by_key(|(at, line)| (*at, is_end(line)));
    let mut text = title(detail);
    for (at, line) in lines {
        let line = several_lines(&line);
        text.push_str(&format!(
            "  {}  {}\n",
            screen.moment(at),
            line.replace('\n', "\n                        ")
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{AttemptId, TaskId, TaskKind, WorkerId};
    use napreduce_protocol::{
        CounterValues, HistoryLine, Invocation, PartReport, SchedulerTables, Submitted,
    };

    use super::*;

    fn detail() -> JobDetail {
        let summary = listing::tests::summary();
        let mut counters = CounterValues::default();
        counters.add("MAP_INPUT_RECORDS", 12);
        counters.add("bad rows", 3);
        let task = TaskId {
            job: summary.job,
            kind: TaskKind::Map,
            index: 3,
        };
        let attempt = AttemptSummary {
            attempt: AttemptId { task, number: 1 },
            worker: WorkerId(2),
            worker_name: "left-hand".to_owned(),
            launched_millis: 1_790_000_000_100,
            ended_millis: Some(1_790_000_001_300),
            end: Some("failed: bad row".to_owned()),
            figures: None,
            moments: None,
        };
        let event = |at_millis, text: &str| HistoryLine {
            at_millis,
            text: text.to_owned(),
        };
        let events = vec![
            event(1_790_000_000_000, "submitted"),
            event(1_790_000_001_500, "failed"),
        ];
        let parts = vec![PartReport {
            name: "part-r-00000".to_owned(),
            records: 2,
            bytes: 9,
            digest: 255,
        }];
        JobDetail {
            counters,
            parts,
            attempts: vec![attempt],
            events,
            ..JobDetail::new(summary)
        }
    }

    #[test]
    fn range_of_estimate_is_shown_if_it_is_one() {
        let of = |least_millis, most_millis| {
            left_text(TimeLeftAnswer {
                least_millis,
                likely_millis: 125_000,
                most_millis,
            })
        };
        assert_eq!(
            of(100_000, 180_000),
            "about 2 min 5 s (1 min 40 s to 3 min 0 s)"
        );
        assert_eq!(of(125_000, 125_400), "about 2 min 5 s");
    }

    #[test]
    fn status_of_failed_job_lists_all_fields() {
        assert_eq!(
            status(&detail(), &Screen::plain()),
            "job_0007 wordcount\n  state      failed\n  reason     job_0007_m_0003 failed 4 times\n  user       ada\n  \
             queue      default, priority 0\n  maps       3/4 75%\n  reduces    -\n  \
             submitted  2026-09-21T14:13:20Z\n  ended      2026-09-21T14:13:21Z\n  took       1.5 s\n  \
             output     /data/out\n  parts      1, 2 records, 9 bytes\n"
        );
    }

    #[test]
    fn what_was_submitted_is_an_item_a_line() {
        let mut detail = detail();
        let words = [
            "wordcount",
            "a b",
            "--output",
            "/data/out",
            "--reduces",
            "4",
        ];
        let invocation = Invocation {
            command: words.iter().map(|word| (*word).to_owned()).collect(),
            directory: "/home/ada".to_owned(),
            inputs: vec!["/home/ada/a b".to_owned(), "/home/ada/\u{1b}[2J".to_owned()],
            inputs_total: 3,
            ..Invocation::default()
        };
        detail.submitted = Some(Submitted::new(None, &[], Some(&invocation), &[], None));
        let tables = r#"{"fair":{"weight":3},"preemption":{"grace":"5s"}}"#.to_owned();
        detail.scheduler = Some(SchedulerTables {
            name: "fair".to_owned(),
            tables,
        });
        let text = submitted(&detail, &Screen::of(80));
        assert!(
            text.starts_with(
                "job_0007 wordcount\n  \
                 command line              wordcount 'a b' \\\n                            \
                                           --output /data/out \\\n                            \
                                           --reduces 4\n  \
                 working directory         /home/ada\n  \
                 inputs                    /home/ada/a b\n                            \
                                           /home/ada/\\u{1b}[2J\n                            \
                                           and 1 more\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("fair\n                            fair.weight = 3\n"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let narrow = submitted(&detail, &Screen::of(40));
        assert!(
            narrow.contains(
                "  inputs\n    /home/ada/a b\n    /home/ada/\\u{1b}[2J\n    and 1 more\n"
            ),
            "{narrow}"
        );
    }

    #[test]
    fn control_characters_in_details_are_escaped() {
        let mut detail = detail();
        let evil = "a\u{1b}[2J\u{202e}\rb";
        (detail.summary.name, detail.summary.user) = (evil.to_owned(), format!("{evil}\nroot"));
        (detail.summary.queue, detail.summary.reason) = (evil.to_owned(), Some(evil.to_owned()));
        detail.summary.output = evil.into();
        detail.events[0].text = evil.to_owned();
        detail.attempts[0].end = Some(evil.to_owned());
        detail.counters.add(evil, 1);
        for text in [status, counters, history].map(|text| text(&detail, &Screen::plain())) {
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']), "{text}");
            assert!(text.contains("a\\u{1b}[2J"), "{text}");
        }
    }

    #[test]
    fn counters_are_aligned() {
        assert_eq!(
            counters(&detail(), &Screen::plain()),
            "job_0007 wordcount\n  MAP_INPUT_RECORDS               12\n  bad rows                         3\n"
        );
    }

    #[test]
    fn attempt_that_ends_with_its_job_is_listed_before_the_end_of_the_job() {
        let mut detail = detail();
        let at_millis = detail.attempts[0].ended_millis.expect("it has ended");
        detail.events[1] = HistoryLine {
            at_millis,
            text: format!("{ENDED}succeeded"),
        };
        let text = history(&detail, &Screen::plain());
        assert!(
            text.ends_with("2026-09-21T14:13:21Z  it has ended: succeeded\n"),
            "{text}"
        );
    }

    #[test]
    fn history_is_in_order_of_time() {
        assert_eq!(
            history(&detail(), &Screen::plain()),
            "job_0007 wordcount\n  \
             2026-09-21T14:13:20Z  submitted\n  \
             2026-09-21T14:13:20Z  job_0007_m_0003.1 launched on worker_0002 (left-hand)\n  \
             2026-09-21T14:13:21Z  job_0007_m_0003.1 failed: bad row after 1.2 s\n  \
             2026-09-21T14:13:21Z  failed\n"
        );
    }
}
