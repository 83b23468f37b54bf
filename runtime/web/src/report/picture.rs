//! The timeline of a job as SVG, with a tooltip on each bar. No meaning depends on colour alone: naps are lines, kills are
//! crossed, failures have a dark end.

use std::collections::HashMap;

use napreduce_answers::{LaneAnswer, NapAnswer, TimelineAnswer};
use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};

use super::markup::Markup;
use super::words::{grouped, stretch};

/// The most bars and lines; the longest ones are drawn.
const MARKS_MAX: usize = 20_000;
/// In units of the drawing.
const WIDTH: f64 = 1_200.0;
const LEFT: f64 = 150.0;
const ROW: usize = 16;
const TOP: usize = 24;
const TICKS: u64 = 6;

pub fn draw(page: &mut Markup, timeline: &TimelineAnswer) {
    if timeline.stints.start.is_empty() {
        page.element("p", "quiet", "No attempt was started.");
        return;
    }
    let span = timeline
        .until_micros
        .saturating_sub(timeline.base_micros)
        .max(1);
    let picture = Picture {
        timeline,
        span,
        shortest: shortest(timeline),
    };
    let height = TOP + ROW * timeline.lanes.len() + 6;
    page.raw("<div class=\"wide\"><svg role=\"img\" aria-label=\"Slots over time; the tables below have the same data\" ");
    page.raw(&format!("viewBox=\"0 0 {WIDTH} {height}\">\n"));
    picture.axis(page, height);
    for (row, lane) in timeline.lanes.iter().enumerate() {
        label(page, row, lane);
    }
    let lanes = picture.naps_lanes();
    let mut marks = 0;
    let mut left_out = 0;
    for nap in &timeline.naps {
        match lanes.get(nap.attempt.as_str()) {
            Some(lane) if nap.length >= picture.shortest && marks < MARKS_MAX => {
                picture.nap(page, nap, *lane);
                marks += 1;
            }
            _ => left_out += 1,
        }
    }
    for row in 0..timeline.stints.start.len() {
        if timeline.stints.length[row] >= picture.shortest && marks < MARKS_MAX {
            picture.stint(page, row);
            marks += 1;
        } else {
            left_out += 1;
        }
    }
    page.raw("</svg></div>\n<p class=\"quiet\">");
    page.text("Blue: maps; orange: reduces. A line below a bar's end is a nap: solid in memory, dashed in files. Crossed: killed for another job. ");
    page.text("A dark end: failed, lost or no longer needed. Point at a bar for details.");
    if left_out > 0 {
        page.text(&format!(" {} shorter ones omitted.", grouped(left_out)));
    }
    page.raw("</p>\n");
}

/// Returns the length below which stints and naps are not drawn.
fn shortest(timeline: &TimelineAnswer) -> u64 {
    let naps = timeline.naps.iter().map(|nap| nap.length);
    let mut lengths: Vec<u64> = timeline.stints.length.iter().copied().chain(naps).collect();
    if lengths.len() <= MARKS_MAX {
        return 0;
    }
    let at = lengths.len() - MARKS_MAX;
    *lengths.select_nth_unstable(at).1
}

fn label(page: &mut Markup, row: usize, lane: &LaneAnswer) {
    let y = TOP + row * ROW + ROW - 4;
    page.raw(&format!(
        "<text class=\"label\" x=\"{}\" y=\"{y}\">",
        LEFT - 8.0
    ));
    page.text(&format!(
        "{} {} {}",
        lane.worker_name,
        lane.kind,
        lane.number + 1
    ));
    page.raw("</text>\n");
}

struct Picture<'a> {
    timeline: &'a TimelineAnswer,
    span: u64,
    shortest: u64,
}

impl Picture<'_> {
    fn x(&self, micros: u64) -> f64 {
        LEFT + micros as f64 / self.span as f64 * (WIDTH - LEFT)
    }

    fn axis(&self, page: &mut Markup, height: usize) {
        for tick in 0..TICKS {
            let at = self.span * tick / TICKS;
            let x = self.x(at);
            page.raw(&format!(
                "<path class=\"tick\" d=\"M{x:.1} {}V{height}\"/>",
                TOP - 4
            ));
            page.raw(&format!(
                "<text class=\"time\" x=\"{:.1}\" y=\"14\">",
                x + 3.0
            ));
            page.text(&stretch(at / 1_000));
            page.raw("</text>\n");
        }
    }

    /// Returns the lane under which the naps of each attempt are drawn: that of its first stint.
    fn naps_lanes(&self) -> HashMap<String, u32> {
        let stints = &self.timeline.stints;
        (0..stints.start.len())
            .rev()
            .map(|row| (self.attempt(row).to_string(), stints.lane[row]))
            .collect()
    }

    fn attempt(&self, row: usize) -> AttemptId {
        let stints = &self.timeline.stints;
        let lane = &self.timeline.lanes[stints.lane[row] as usize];
        let kind = if lane.kind == "reduce" {
            TaskKind::Reduce
        } else {
            TaskKind::Map
        };
        let task = TaskId {
            job: JobId(stints.job[row]),
            kind,
            index: stints.task[row],
        };
        AttemptId {
            task,
            number: stints.attempt[row],
        }
    }

    fn stint(&self, page: &mut Markup, row: usize) {
        let stints = &self.timeline.stints;
        let lane = stints.lane[row];
        let kind = self.timeline.lanes[lane as usize].kind;
        let x = self.x(stints.start[row]);
        let y = TOP + lane as usize * ROW + 1;
        let width = (self.x(stints.start[row] + stints.length[row]) - x).max(0.4);
        let (sign, ended) = match stints.end[row] {
            0 => ("", "running"),
            1 => ("", "then suspended"),
            2 => ("", "then checkpointed"),
            3 => ("killed", "killed for another job"),
            4 => ("", "succeeded"),
            _ => ("failed", "failed, lost or no longer needed"),
        };
        page.raw(&format!(
            "<g><rect class=\"{kind}\" x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"11\"/>"
        ));
        let end = x + width;
        match sign {
            "killed" => page.raw(&format!(
                "<path class=\"killed\" d=\"M{x:.2} {y}L{end:.2} {}\"/>",
                y + 11
            )),
            "failed" => page.raw(&format!("<path class=\"failed\" d=\"M{end:.2} {y}v11\"/>")),
            _ => {}
        }
        page.raw("<title>");
        page.text(&format!(
            "{}: {} running, {ended}",
            self.attempt(row),
            stretch(stints.length[row] / 1_000)
        ));
        let row = row as u32;
        if let Some(end) = self.timeline.ends.get(&row) {
            page.text(&format!(" ({end})"));
        }
        if let Some(from) = self.timeline.restores.get(&row) {
            page.text(&format!("; restored from the checkpoint of {from}"));
        }
        page.raw("</title></g>\n");
    }

    fn nap(&self, page: &mut Markup, nap: &NapAnswer, lane: u32) {
        let from = self.x(nap.start);
        let until = self.x(nap.start + nap.length);
        let y = TOP + lane as usize * ROW + 14;
        let class = if nap.is_suspended {
            "suspended"
        } else {
            "checkpointed"
        };
        page.raw(&format!(
            "<g><path class=\"{class}\" d=\"M{from:.2} {y}H{until:.2}\"/><title>"
        ));
        page.text(&format!(
            "{}: {class} for {}",
            nap.attempt,
            stretch(nap.length / 1_000)
        ));
        if let Some(preemption) = self.timeline.preemptions.get(nap.preemption as usize) {
            let whom = preemption
                .beneficiary
                .as_ref()
                .map(|job| format!(" for {job}"))
                .unwrap_or_default();
            page.text(&format!(
                "{whom} by {}: {}",
                preemption.by, preemption.reason
            ));
        }
        page.raw("</title></g>\n");
    }
}

#[cfg(test)]
mod tests {
    use napreduce_answers::StintAnswer;

    use super::*;

    fn timeline(stints: usize) -> TimelineAnswer {
        let lane = LaneAnswer {
            worker: "worker_0001".to_owned(),
            worker_name: "w".to_owned(),
            kind: "map",
            number: 0,
        };
        let columns = StintAnswer {
            start: (0..stints as u64).map(|at| at * 10).collect(),
            starting: vec![0; stints],
            count: Vec::new(),
            length: (0..stints as u64).map(|at| at % 9 + 1).collect(),
            lane: vec![0; stints],
            job: vec![1; stints],
            task: (0..stints as u32).collect(),
            attempt: vec![1; stints],
            end: (0..stints).map(|at| (at % 6) as u8).collect(),
            preemption: vec![-1; stints],
        };
        TimelineAnswer {
            until_micros: stints as u64 * 10,
            lanes: vec![lane],
            stints: columns,
            ..TimelineAnswer::default()
        }
    }

    fn drawn(timeline: &TimelineAnswer) -> String {
        let mut page = Markup::default();
        draw(&mut page, timeline);
        page.done()
    }

    #[test]
    fn all_bars_are_drawn_up_to_the_limit() {
        let page = drawn(&timeline(12));
        assert_eq!(page.matches("<rect").count(), 12);
        assert_eq!(
            (
                page.matches("\"killed\"").count(),
                page.matches("\"failed\"").count()
            ),
            (2, 2)
        );
        assert!(
            page.contains("job_0001_m_0003.1") && !page.contains("omitted"),
            "{page}"
        );
        assert!(drawn(&TimelineAnswer::default()).contains("No attempt was started"));
    }

    #[test]
    fn longest_bars_are_drawn_above_the_limit() {
        let page = drawn(&timeline(MARKS_MAX + 500));
        assert_eq!(page.matches("<rect").count(), MARKS_MAX);
        assert!(page.contains("500 shorter ones omitted"), "{}", page.len());
    }
}
