//! The common parts of all figures: size, axes, legend, and series styles.

use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::svg::{Anchor, Mark, Stroke, Svg};

/// Width and height in pixels.
const SIZE: (f64, f64) = (960.0, 540.0);
/// Margins for axis labels.
const LEFT: f64 = 74.0;
const TOP: f64 = 18.0;
const BELOW: f64 = 52.0;
/// Approximate width of a letter.
const LETTER: f64 = 7.4;
/// Letters per line of the legend.
const LEGEND_LETTERS: usize = 30;

/// Colour-blind safe and distinct in grey (Okabe and Ito), darkest first.
const COLOURS: [&str; 6] = [
    "#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00",
];
const DASHES: [&[u32]; 6] = [
    &[],
    &[12, 5],
    &[6, 4],
    &[16, 4, 6, 4],
    &[24, 6],
    &[6, 4, 6, 10],
];
const MARKS: [Mark; 6] = [
    Mark::Circle,
    Mark::Square,
    Mark::Triangle,
    Mark::Diamond,
    Mark::Wedge,
    Mark::Cross,
];

/// An error in drawing a figure.
#[derive(Debug, Error)]
#[error("cannot draw {path}: {what}")]
pub struct PlotError {
    pub path: PathBuf,
    pub what: String,
}

/// An axis over a range of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis<'a> {
    pub label: &'a str,
    pub least: f64,
    pub most: f64,
    pub logarithmic: bool,
}

/// The sample of a legend entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sample {
    /// The line and mark of a series.
    Series(usize),
    /// A box with the fill of a series.
    Fill(usize),
    /// A box of one colour.
    Colour(&'static str),
    /// A hollow mark of a series.
    Hollow(usize),
    /// An interval with its cross strokes.
    Interval,
}

/// A figure with axes.
#[derive(Debug)]
pub struct Frame<'a> {
    pub svg: Svg,
    x: Axis<'a>,
    y: Axis<'a>,
    right: f64,
}

pub fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

pub fn mark(number: usize) -> Mark {
    MARKS[number % MARKS.len()]
}

pub fn stroke(number: usize, width: f64) -> Stroke {
    // Beyond the list, other combinations of colour and dashes.
    let dashes = DASHES[(number + number / COLOURS.len()) % DASHES.len()];
    Stroke {
        colour: colour(number),
        width,
        dashes,
    }
}

impl<'a> Axis<'a> {
    pub fn linear(label: &'a str, least: f64, most: f64) -> Axis<'a> {
        Axis {
            label,
            least,
            most,
            logarithmic: false,
        }
    }

    /// Returns the position of a value, from 0 to 1.
    fn share(self, value: f64) -> f64 {
        if self.logarithmic {
            (value / self.least).ln() / (self.most / self.least).ln()
        } else {
            (value - self.least) / (self.most - self.least)
        }
    }

    /// Returns round values within the range.
    fn ticks(self) -> Vec<f64> {
        if self.logarithmic {
            let decades = self.least.log10().floor() as i32..=self.most.log10().ceil() as i32;
            let wide = self.most / self.least > 300.0;
            let within = |value: &f64| (self.least..=self.most).contains(value);
            let steps: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
            return decades
                .flat_map(|power| steps.iter().map(move |step| step * 10.0_f64.powi(power)))
                .filter(within)
                .collect();
        }
        let rough = (self.most - self.least) / 7.0;
        let unit = 10.0_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|times| times * unit)
            .into_iter()
            .find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.least / step - 1e-9).ceil() as i64;
        let last = (self.most / step + 1e-9).floor() as i64;
        (first..=last).map(|number| number as f64 * step).collect()
    }
}

/// Formats a tick.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

impl<'a> Frame<'a> {
    /// Creates the frame with axes and legend. Without ticks on x if groups are named.
    pub fn new(
        x: Axis<'a>,
        y: Axis<'a>,
        named_groups: bool,
        legend: &[(Sample, String)],
    ) -> Frame<'a> {
        let lines: Vec<(Sample, Vec<String>)> = legend
            .iter()
            .map(|(sample, name)| (*sample, wrapped(name)))
            .collect();
        let longest = lines
            .iter()
            .flat_map(|(_, lines)| lines)
            .map(|line| line.chars().count())
            .max();
        let margin = longest.map_or(24.0, |letters| letters as f64 * LETTER + 74.0);
        let mut frame = Frame {
            svg: Svg::default(),
            x,
            y,
            right: SIZE.0 - margin,
        };
        frame.axes(named_groups);
        frame.legend(&lines);
        frame
    }

    fn axes(&mut self, named_groups: bool) {
        let bottom = SIZE.1 - BELOW;
        let middle = (LEFT + self.right) / 2.0;
        let grid = Stroke::solid("#dddddd", 1.0);
        for tick in self.y.ticks() {
            let at = self.at(self.x.least, tick).1;
            self.svg.line(&[(LEFT, at), (self.right, at)], grid);
            self.svg
                .text((LEFT - 8.0, at + 4.5), Anchor::End, &number(tick));
        }
        let ticks = if named_groups {
            Vec::new()
        } else {
            self.x.ticks()
        };
        for tick in ticks {
            let at = self.at(tick, self.y.least).0;
            self.svg.line(
                &[(at, bottom), (at, bottom + 5.0)],
                Stroke::solid("#000000", 1.0),
            );
            self.svg
                .text((at, bottom + 20.0), Anchor::Middle, &number(tick));
        }
        self.svg.line(
            &[(LEFT, TOP), (LEFT, bottom), (self.right, bottom)],
            Stroke::solid("#000000", 1.0),
        );
        self.svg
            .text((middle, SIZE.1 - 10.0), Anchor::Middle, self.x.label);
        self.svg.upward((18.0, (TOP + bottom) / 2.0), self.y.label);
    }

    fn legend(&mut self, entries: &[(Sample, Vec<String>)]) {
        let left = self.right + 16.0;
        let mut y = TOP + 12.0;
        for (sample, lines) in entries {
            self.sample(*sample, left, y);
            for line in lines {
                self.svg.text((left + 44.0, y + 4.5), Anchor::Start, line);
                y += 17.0;
            }
            y += 7.0;
        }
    }

    fn sample(&mut self, sample: Sample, left: f64, y: f64) {
        let right = left + 36.0;
        let middle = left + 18.0;
        match sample {
            Sample::Series(number) => {
                self.svg.line(&[(left, y), (right, y)], stroke(number, 2.0));
                self.svg
                    .mark(mark(number), (middle, y), 4.0, colour(number), false);
            }
            Sample::Fill(number) => {
                self.fill((left + 4.0, y - 7.0), (right - 4.0, y + 7.0), number)
            }
            Sample::Colour(colour) => {
                let corners = [
                    (left + 4.0, y - 7.0),
                    (right - 4.0, y - 7.0),
                    (right - 4.0, y + 7.0),
                    (left + 4.0, y + 7.0),
                ];
                self.svg
                    .shape(&corners, colour, Stroke::solid("#000000", 0.5));
            }
            Sample::Hollow(number) => {
                self.svg
                    .mark(mark(number), (middle, y), 6.0, colour(number), true)
            }
            Sample::Interval => {
                let stroke = Stroke::solid("#000000", 1.0);
                self.svg
                    .line(&[(middle, y - 8.0), (middle, y + 8.0)], stroke);
                self.svg
                    .line(&[(middle - 5.0, y - 8.0), (middle + 5.0, y - 8.0)], stroke);
                self.svg
                    .line(&[(middle - 5.0, y + 8.0), (middle + 5.0, y + 8.0)], stroke);
            }
        }
    }

    /// Converts values to pixels.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let bottom = SIZE.1 - BELOW;
        (
            LEFT + self.x.share(x) * (self.right - LEFT),
            bottom - self.y.share(y) * (bottom - TOP),
        )
    }

    /// Draws a line; points on the same pixel are merged.
    pub fn line(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        let mut pixels: Vec<(f64, f64)> = Vec::new();
        for (x, y) in points {
            let at = self.at(*x, *y);
            let near =
                |last: &(f64, f64)| (last.0 - at.0).abs() < 0.25 && (last.1 - at.1).abs() < 0.25;
            if !pixels.last().is_some_and(near) {
                pixels.push(at);
            }
        }
        self.svg.line(&pixels, stroke);
    }

    /// Draws an interval at x with cross strokes of `half` pixels to each side.
    pub fn interval(&mut self, x: f64, interval: (f64, f64), half: f64, colour: &'static str) {
        let (low, high) = interval;
        if low == high {
            return;
        }
        let low = self.at(x, low);
        let high = self.at(x, high);
        let stroke = Stroke::solid(colour, 1.0);
        self.svg.line(&[low, high], stroke);
        for end in [low, high] {
            self.svg
                .line(&[(end.0 - half, end.1), (end.0 + half, end.1)], stroke);
        }
    }

    /// Draws a box between two corners in pixels, with the fill and hatching of a series.
    pub fn fill(&mut self, top_left: (f64, f64), bottom_right: (f64, f64), number: usize) {
        const FILLS: [&str; 6] = [
            "#0072b2", "#f6cf71", "#ffffff", "#8fd3bd", "#d9d9d9", "#e3a9cb",
        ];
        let (left, top) = top_left;
        let (right, bottom) = bottom_right;
        let outline = Stroke::solid("#000000", 1.0);
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
        self.svg
            .shape(&corners, FILLS[number % FILLS.len()], outline);
        // The first fill is plain; then rising, crossed, falling, horizontal.
        let slopes: &[f64] = match number % FILLS.len() {
            0 => &[],
            1 => &[-1.0],
            2 => &[-1.0, 1.0],
            3 => &[1.0],
            _ => &[0.0],
        };
        let gap = 7.0;
        let thin = Stroke::solid("#000000", 0.7);
        for slope in slopes {
            // Lines y = offset + slope * x, clipped to the box.
            let width = right - left;
            let mut offset = top - width + gap;
            while offset < bottom + width {
                let end = |x: f64| offset + slope * (x - left);
                let mut ends = [(left, end(left)), (right, end(right))];
                for (x, y) in &mut ends {
                    let cut = y.clamp(top, bottom);
                    if *slope != 0.0 {
                        *x = left + (cut - offset) / slope;
                    }
                    *y = cut;
                }
                let inside = ends
                    .iter()
                    .all(|(x, _)| (left - 0.01..=right + 0.01).contains(x));
                if inside
                    && (ends[0].0 - ends[1].0).abs() > 0.5
                    && (top..=bottom).contains(&ends[0].1)
                {
                    let level = *slope == 0.0 && !(top + 0.5..bottom - 0.5).contains(&offset);
                    if !level {
                        self.svg.line(&ends, thin);
                    }
                }
                offset += gap;
            }
        }
    }

    /// Writes the figure.
    pub fn write(self, path: &Path, title: &str) -> Result<(), PlotError> {
        let failed = |error: std::io::Error| PlotError {
            path: path.to_owned(),
            what: error.to_string(),
        };
        fs::write(path, self.svg.finish(SIZE, title)).map_err(failed)
    }

    /// Returns the lower right corner of the plot area.
    pub fn corner(&self) -> (f64, f64) {
        (self.right, SIZE.1 - BELOW)
    }
}

/// Returns the approximate width of a text.
pub fn width_of(words: &str) -> f64 {
    words.chars().count() as f64 * LETTER
}

/// Wraps a name into lines of the legend.
fn wrapped(name: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= LEGEND_LETTERS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(
            Axis::linear("", 0.0, 1.0).ticks(),
            [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]
        );
        assert_eq!(Axis::linear("", -30.0, 120.0).ticks(), [0.0, 50.0, 100.0]);
        let log = Axis {
            logarithmic: true,
            ..Axis::linear("", 3.0, 90_000.0)
        };
        assert_eq!(log.ticks(), [10.0, 100.0, 1_000.0, 10_000.0]);
        assert_eq!(
            ["0.6", "-3", "100", "0"],
            [0.6000000000000001, -3.0, 100.0, -0.0].map(number)
        );
    }

    #[test]
    fn twelve_series_styles_are_distinct() {
        let styles: Vec<_> = (0..12).map(|number| stroke(number, 2.0)).collect();
        for (number, style) in styles.iter().enumerate() {
            assert!(!styles[..number].contains(style), "{number}");
            assert!(style.dashes.iter().all(|pixels| *pixels > 3), "{style:?}");
        }
    }

    #[test]
    fn long_names_are_wrapped() {
        let lines = wrapped("production jobs of the queue with the longest name of all");
        assert_eq!(
            lines,
            [
                "production jobs of the queue",
                "with the longest name of all"
            ]
        );
    }
}
