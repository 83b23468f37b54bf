//! The report of a job: one HTML file without server, script or network. Rows beyond the limit are counted.

mod markup;
mod picture;
mod words;

use napreduce_engine::Primitive;
use napreduce_protocol::{AttemptSummary, JobDetail, PhaseProgress, PreemptionSummary};

use markup::Markup;
use napreduce_answers::{FindingAnswer, TimelineAnswer, TimelineWindow};
use words::{bytes, grouped, moment, stretch};

/// The most rows of a table.
const ROWS_MAX: usize = 5_000;
const STYLE: &str = include_str!("report.css");

/// Writes the report of a job. An unfinished job extends to `now_micros`, in microseconds since 1970.
///
/// ```no_run
/// # fn report(job: &napreduce_protocol::JobDetail) -> std::io::Result<()> {
/// std::fs::write("job_0007.html", napreduce_web::report_html(job, 1_790_000_000_000_000))
/// # }
/// ```
pub fn report_html(job: &JobDetail, now_micros: u64) -> String {
    let summary = &job.summary;
    let mut page = Markup::default();
    let name = format!("{} {}", summary.job, summary.name);
    page.raw("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
    page.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.element("title", "", &name);
    page.raw("<style>\n");
    page.raw(STYLE);
    page.raw("</style>\n<main>\n");
    page.element("h1", "", &name);
    head(&mut page, job, now_micros);
    findings(&mut page, &FindingAnswer::all_of(job, &[], now_micros));
    page.element("h2", "", "Slot usage");
    let ended = summary.ended_millis.map(|ended| (ended + 1) * 1_000);
    let window = TimelineWindow {
        from_micros: summary.submitted_millis * 1_000,
        until_micros: ended.unwrap_or(now_micros),
    };
    picture::draw(&mut page, &TimelineAnswer::of([job], window, None));
    preemptions(&mut page, job);
    attempts(&mut page, job);
    counters(&mut page, job);
    parts(&mut page, job);
    events(&mut page, job);
    page.raw("<footer>");
    page.text(&format!(
        "napreduce {}, {} UTC",
        env!("CARGO_PKG_VERSION"),
        moment(now_micros / 1_000)
    ));
    page.raw("</footer>\n</main>\n</html>\n");
    page.done()
}

fn head(page: &mut Markup, job: &JobDetail, now_micros: u64) {
    let summary = &job.summary;
    let until = summary.ended_millis.unwrap_or(now_micros / 1_000);
    let took = stretch(until.saturating_sub(summary.submitted_millis));
    let state = summary.phase.in_words();
    page.raw("<p class=\"state\">");
    page.element("strong", state, state);
    page.text(&match summary.ended_millis {
        Some(_) => format!(" after {took}"),
        None => format!(" for {took}, as of {} UTC", moment(now_micros / 1_000)),
    });
    if let Some(reason) = &summary.reason {
        page.text(&format!(": {reason}"));
    }
    page.raw("</p>\n<dl>\n");
    let phase =
        |phase: &PhaseProgress| format!("{} of {} done", grouped(phase.done), grouped(phase.tasks));
    let sum = |of: fn(&PreemptionSummary) -> u64| stretch(job.preemptions.iter().map(of).sum());
    for (term, value) in [
        ("User", summary.user.clone()),
        ("Queue", summary.queue.clone()),
        ("Priority", summary.priority.to_string()),
        (
            "Submitted",
            format!("{} UTC", moment(summary.submitted_millis)),
        ),
        ("Maps", phase(&summary.progress.map)),
        ("Reduces", phase(&summary.progress.reduce)),
        ("Attempts", grouped(job.attempts.len())),
        ("Requests for its slots", grouped(job.preemptions.len())),
        ("Work saved", sum(|one| one.work_saved_millis)),
        ("Work lost", sum(|one| one.work_lost_millis)),
        ("Output", summary.output.to_string_lossy().into_owned()),
    ] {
        page.raw("<div>");
        page.element("dt", "", term);
        page.element("dd", "", &value);
        page.raw("</div>\n");
    }
    page.raw("</dl>\n");
}

/// Appends what made the job slow; nothing if nothing was found.
fn findings(page: &mut Markup, findings: &[FindingAnswer]) {
    if findings.is_empty() {
        return;
    }
    page.element("h2", "", "What made it slow");
    page.raw("<ul>\n");
    for finding in findings {
        page.element("li", "", &finding.line());
        page.raw("\n");
    }
    page.raw("</ul>\n");
}

/// Appends a table and the number of omitted rows; nothing if there are no rows.
fn table<T>(
    page: &mut Markup,
    heading: &str,
    columns: &[&str],
    rows: &[T],
    cells: impl Fn(&T) -> Vec<String>,
) {
    if rows.is_empty() {
        return;
    }
    page.element("h2", "", heading);
    page.raw("<div class=\"wide\"><table><thead><tr>");
    for column in columns {
        page.element("th", "", column);
    }
    page.raw("</tr></thead>\n<tbody>\n");
    for row in rows.iter().take(ROWS_MAX) {
        page.raw("<tr>");
        for cell in cells(row) {
            page.element("td", "", &cell);
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody></table></div>\n");
    let left_out = rows.len().saturating_sub(ROWS_MAX);
    if left_out > 0 {
        page.element(
            "p",
            "quiet",
            &format!("{} more rows omitted", grouped(left_out)),
        );
    }
}

fn preemptions(page: &mut Markup, job: &JobDetail) {
    let begin = job.summary.submitted_millis * 1_000;
    let columns = [
        "After",
        "Attempt",
        "How",
        "For",
        "By",
        "Why",
        "Slot free after",
        "Ended",
        "Saved",
        "Lost",
        "Kept",
    ];
    table(page, "Preemptions", &columns, &job.preemptions, |one| {
        let how = if one.asked == one.primitive {
            one.primitive.to_string()
        } else {
            format!("{}, requested {}", one.primitive, one.asked)
        };
        let freed = one
            .freed_micros
            .map(|freed| freed.saturating_sub(one.requested_micros));
        vec![
            stretch(one.requested_micros.saturating_sub(begin) / 1_000),
            one.attempt.to_string(),
            how,
            one.beneficiary
                .map(|job| job.to_string())
                .unwrap_or_default(),
            one.by.clone(),
            one.reason.clone(),
            freed
                .map(|micros| format!("{:.1} ms", micros as f64 / 1_000.0))
                .unwrap_or_default(),
            one.end
                .map(|end| end.in_words().to_owned())
                .unwrap_or_default(),
            stretch(one.work_saved_millis),
            stretch(one.work_lost_millis),
            match one.primitive {
                // A kill keeps nothing, although the attempt used memory.
                Primitive::Kill | Primitive::Wait => String::new(),
                _ => bytes(one.resident_bytes + one.swapped_bytes + one.checkpoint_bytes),
            },
        ]
    });
}

fn attempts(page: &mut Markup, job: &JobDetail) {
    let begin = job.summary.submitted_millis;
    let columns = ["Attempt", "Worker", "Started after", "Took", "End"];
    let cells = |one: &AttemptSummary| {
        let took = one
            .ended_millis
            .map(|ended| stretch(ended.saturating_sub(one.launched_millis)));
        vec![
            one.attempt.to_string(),
            one.worker_name.clone(),
            stretch(one.launched_millis.saturating_sub(begin)),
            took.unwrap_or_else(|| "running".to_owned()),
            one.end.clone().unwrap_or_default(),
        ]
    };
    table(page, "Attempts", &columns, &job.attempts, cells);
}

fn counters(page: &mut Markup, job: &JobDetail) {
    let counters: Vec<(String, u64)> = job
        .counters
        .iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    table(
        page,
        "Counters",
        &["Counter", "Value"],
        &counters,
        |(name, value)| vec![name.clone(), grouped(*value)],
    );
}

fn parts(page: &mut Markup, job: &JobDetail) {
    table(
        page,
        "Parts",
        &["Part", "Records", "Bytes", "XXH3"],
        &job.parts,
        |part| {
            vec![
                part.name.clone(),
                grouped(part.records),
                grouped(part.bytes),
                format!("{:016x}", part.digest),
            ]
        },
    );
}

fn events(page: &mut Markup, job: &JobDetail) {
    let begin = job.summary.submitted_millis;
    table(page, "Events", &["After", "Event"], &job.events, |event| {
        vec![
            stretch(event.at_millis.saturating_sub(begin)),
            event.text.clone(),
        ]
    });
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use napreduce_answers::samples::{EVIL, detail, skewed};

    use super::*;

    const NOW: u64 = 1_790_000_009_000_000;

    /// Counts unclosed elements, of those that need an end tag.
    fn unbalanced(page: &str) -> BTreeMap<String, i32> {
        let mut open: BTreeMap<String, i32> = BTreeMap::new();
        for tag in page.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').expect("a tag ends");
            let (name, change) = match tag.strip_prefix('/') {
                Some(name) => (name, -1),
                None if tag.ends_with('/') || tag.starts_with('!') || tag.starts_with("meta") => {
                    continue;
                }
                None => (tag.split([' ', '\n']).next().expect("a name"), 1),
            };
            *open.entry(name.to_owned()).or_default() += change;
        }
        open.retain(|_, open| *open != 0);
        open
    }

    #[test]
    fn report_contains_the_data_of_a_job() {
        let page = report_html(&detail(), NOW);
        for part in [
            "<title>job_0007 wordcount</title>",
            "job_0007_m_0003 failed 4 times",
            "<td>left-hand</td><td>0.100 s</td><td>1.20 s</td><td>failed: bad row</td>",
            "<td>MAP_INPUT_RECORDS</td><td>12</td>",
            "<td>part-r-00000</td><td>2</td><td>9</td><td>00000000000000ff</td>",
            "<dd>3 of 4 done</dd>",
            "<rect",
        ] {
            assert!(page.contains(part), "no {part} in {page}");
        }
        assert_eq!(unbalanced(&page), BTreeMap::new());
    }

    #[test]
    fn report_explains_slowness_if_there_is_any() {
        let page = report_html(&skewed(), NOW);
        assert!(page.contains("<h2>What made it slow</h2>"), "{page}");
        assert!(
            page.contains("<li>job_0007_r_0002 read 89 % of all records, "),
            "{page}"
        );
        assert_eq!(unbalanced(&page), BTreeMap::new());
        assert!(!report_html(&detail(), NOW).contains("What made it slow"));
    }

    #[test]
    fn foreign_text_is_escaped() {
        let mut job = detail();
        for text in [
            &mut job.summary.name,
            &mut job.summary.user,
            &mut job.events[0].text,
        ] {
            *text = EVIL.to_owned();
        }
        job.summary.reason = Some(EVIL.to_owned());
        job.attempts[0].end = Some(EVIL.to_owned());
        job.attempts[0].worker_name = EVIL.to_owned();
        job.counters.add(EVIL, 1);
        let page = report_html(&job, NOW);
        assert!(
            !page.contains("<img") && !page.contains('\u{202e}'),
            "{page}"
        );
        assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"));
        assert_eq!(unbalanced(&page), BTreeMap::new());
        assert!(
            !page.contains("<script") && !page.contains("http://") && !page.contains("https://")
        );
    }

    #[test]
    fn omitted_rows_are_counted() {
        let mut job = detail();
        let one = job.attempts[0].clone();
        for number in 2..ROWS_MAX as u32 + 12 {
            let mut next = one.clone();
            next.attempt.number = number;
            job.attempts.push(next);
        }
        let page = report_html(&job, NOW);
        assert!(page.contains("11 more rows omitted"), "{}", page.len());
    }
}
