//! The life of every attempt, drawn.
//!
//! Owns this drawing (SVG), with a title on each bar for what people want to know of it. No sign is a colour
//! alone: naps are lines, what was killed is crossed, what failed has a dark end. Does not own which stints
//! and naps there are (`answers`).

use std::collections::HashMap;

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};

use super::markup::Markup;
use super::words::{grouped, stretch};
use crate::answers::{LaneAnswer, NapAnswer, TimelineAnswer};

/// Bars and lines of a picture; the longest ones are drawn.
const MARKS_MAX: usize = 20_000;
/// In units of the drawing, as wide as `WIDTH`.
const WIDTH: f64 = 1_200.0;
const LEFT: f64 = 150.0;
const ROW: usize = 16;
const TOP: usize = 24;
const TICKS: u64 = 6;

pub fn draw(page: &mut Markup, timeline: &TimelineAnswer) {
    if timeline.stints.start.is_empty() {
        page.element("p", "quiet", "Nothing of it was ever begun.");
        return;
    }
    let span = timeline.until_micros.saturating_sub(timeline.base_micros).max(1);
    let picture = Picture { timeline, span, shortest: shortest(timeline) };
    let height = TOP + ROW * timeline.lanes.len() + 6;
    page.raw("<div class=\"wide\"><svg role=\"img\" aria-label=\"Slots over time; the tables below say the same\" ");
    page.raw(&format!("viewBox=\"0 0 {WIDTH} {height}\">\n"));
    picture.axis(page, height);
    for (row, lane) in timeline.lanes.iter().enumerate() {
        label(page, row, lane);
    }
    let lanes = picture.naps_lanes();
    let (mut marks, mut left_out) = (0, 0);
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
    page.text("Blue: maps; orange: reduces. A line under a bar's end is a nap: whole in memory, broken in files. Crossed: killed for another job. ");
    page.text(
        "A dark end: it failed, was lost or was not wanted any more. Point at a bar to see what it is.",
    );
    if left_out > 0 {
        page.text(&format!(" {} shorter ones are left out.", grouped(left_out)));
    }
    page.raw("</p>\n");
}

/// Stints and naps that are shorter are not drawn: of too many, the longest ones are.
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
    page.raw(&format!("<text class=\"label\" x=\"{}\" y=\"{y}\">", LEFT - 8.0));
    page.text(&format!("{} {} {}", lane.worker_name, lane.kind, lane.number + 1));
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
            page.raw(&format!("<path class=\"tick\" d=\"M{x:.1} {}V{height}\"/>", TOP - 4));
            page.raw(&format!("<text class=\"time\" x=\"{:.1}\" y=\"14\">", x + 3.0));
            page.text(&stretch(at / 1_000));
            page.raw("</text>\n");
        }
    }

    /// Where the naps of attempts are drawn: under the lane on which they were begun.
    fn naps_lanes(&self) -> HashMap<String, u32> {
        let stints = &self.timeline.stints;
        (0..stints.start.len()).rev().map(|row| (self.attempt(row).to_string(), stints.lane[row])).collect()
    }

    fn attempt(&self, row: usize) -> AttemptId {
        let stints = &self.timeline.stints;
        let lane = &self.timeline.lanes[stints.lane[row] as usize];
        let kind = if lane.kind == "reduce" { TaskKind::Reduce } else { TaskKind::Map };
        let task = TaskId { job: JobId(stints.job[row]), kind, index: stints.task[row] };
        AttemptId { task, number: stints.attempt[row] }
    }

    fn stint(&self, page: &mut Markup, row: usize) {
        let stints = &self.timeline.stints;
        let lane = stints.lane[row];
        let kind = self.timeline.lanes[lane as usize].kind;
        let (x, y) = (self.x(stints.start[row]), TOP + lane as usize * ROW + 1);
        let width = (self.x(stints.start[row] + stints.length[row]) - x).max(0.4);
        let (sign, ended) = match stints.end[row] {
            0 => ("", "it goes on"),
            1 => ("", "then suspended"),
            2 => ("", "then checkpointed"),
            3 => ("killed", "killed for another job"),
            4 => ("", "done"),
            _ => ("failed", "ended without a result"),
        };
        page.raw(&format!(
            "<g><rect class=\"{kind}\" x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"11\"/>"
        ));
        let end = x + width;
        match sign {
            "killed" => page.raw(&format!("<path class=\"killed\" d=\"M{x:.2} {y}L{end:.2} {}\"/>", y + 11)),
            "failed" => page.raw(&format!("<path class=\"failed\" d=\"M{end:.2} {y}v11\"/>")),
            _ => {}
        }
        page.raw("<title>");
        page.text(&format!(
            "{}: {} at work, {ended}",
            self.attempt(row),
            stretch(stints.length[row] / 1_000)
        ));
        let row = row as u32;
        if let Some(said) = self.timeline.ends.get(&row) {
            page.text(&format!(" ({said})"));
        }
        if let Some(from) = self.timeline.restores.get(&row) {
            page.text(&format!("; it went on from the checkpoint of {from}"));
        }
        page.raw("</title></g>\n");
    }

    fn nap(&self, page: &mut Markup, nap: &NapAnswer, lane: u32) {
        let (from, until) = (self.x(nap.start), self.x(nap.start + nap.length));
        let y = TOP + lane as usize * ROW + 14;
        let class = if nap.is_suspended { "suspended" } else { "checkpointed" };
        page.raw(&format!("<g><path class=\"{class}\" d=\"M{from:.2} {y}H{until:.2}\"/><title>"));
        let where_to = if nap.is_suspended { "suspended" } else { "checkpointed" };
        page.text(&format!("{}: {where_to} for {}", nap.attempt, stretch(nap.length / 1_000)));
        if let Some(preemption) = self.timeline.preemptions.get(nap.preemption as usize) {
            let whom = preemption.beneficiary.as_ref().map(|job| format!(" for {job}")).unwrap_or_default();
            page.text(&format!("{whom} by {}: {}", preemption.by, preemption.reason));
        }
        page.raw("</title></g>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::StintAnswer;

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
    fn every_bar_is_drawn_as_long_as_there_are_not_too_many() {
        let page = drawn(&timeline(12));
        assert_eq!(page.matches("<rect").count(), 12);
        assert_eq!((page.matches("\"killed\"").count(), page.matches("\"failed\"").count()), (2, 2));
        assert!(page.contains("job_0001_m_0003.1") && !page.contains("left out"), "{page}");
        assert!(drawn(&TimelineAnswer::default()).contains("Nothing of it was ever begun"));
    }

    #[test]
    fn of_too_many_the_longest_are_drawn_and_the_others_counted() {
        let page = drawn(&timeline(MARKS_MAX + 500));
        assert_eq!(page.matches("<rect").count(), MARKS_MAX);
        assert!(page.contains("500 shorter ones are left out"), "{}", page.len());
    }
}
