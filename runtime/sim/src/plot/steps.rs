//! Figures of step functions: distributions, and slots over time.

use std::path::Path;

use super::frame::{Axis, Frame, PlotError, Sample, colour, mark, stroke, width_of};
use super::svg::{Anchor, Stroke};

/// Maximum number of layers with their own colour and legend entry; smaller ones share the last.
pub const LAYERS_MAX: usize = 12;

/// Fractions at which a distribution has marks.
const MARKED: [f64; 4] = [0.2, 0.4, 0.6, 0.8];

/// Alternating light and dark, so that neighbours differ in grey.
const LAYERS: [&str; 13] = [
    "#0072b2", "#f6cf71", "#009e73", "#f4c6dc", "#d55e00", "#bfe3f5", "#5b2a86", "#cdeac0",
    "#8c510a", "#ffffff", "#a6761d", "#e5e5e5", "#808080",
];

/// A line of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its legend entry.
    pub name: String,
    /// In ascending x.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// Adds step functions.
    pub fn sum(name: &str, all: &[Series]) -> Series {
        let mut changes: Vec<(f64, f64)> = Vec::new();
        for one in all {
            let mut level = 0.0;
            for (x, y) in &one.points {
                changes.push((*x, y - level));
                level = *y;
            }
        }
        changes.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut points = Vec::<(f64, f64)>::new();
        let mut level = 0.0;
        for (x, change) in changes {
            level += change;
            match points.last_mut() {
                Some(last) if last.0 == x => last.1 = level,
                _ => points.push((x, level)),
            }
        }
        Series {
            name: name.to_owned(),
            points,
        }
    }
}

/// Draws empirical distributions on a logarithmic axis of seconds. Points are a value and the fraction of
/// values up to it.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn distributions(path: &Path, title: &str, series: &[Series]) -> Result<(), PlotError> {
    let positive = || {
        series
            .iter()
            .flat_map(|one| &one.points)
            .map(|point| point.0)
            .filter(|x| *x > 0.0)
    };
    let least = positive().fold(f64::INFINITY, f64::min);
    let (least, most) = if least.is_finite() {
        (least, positive().fold(least, f64::max))
    } else {
        (1.0, 1.0)
    };
    let x = Axis {
        logarithmic: true,
        ..Axis::linear("seconds", least * 0.9, most * 1.1)
    };
    let mut frame = distribution_frame(x, series);
    lines(&mut frame, series, least * 0.9);
    frame.write(path, title)
}

/// Draws empirical distributions of differences, which have either sign. Points are a value and the fraction
/// of values up to it.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn differences(path: &Path, title: &str, x: &str, series: &[Series]) -> Result<(), PlotError> {
    let values = || {
        series
            .iter()
            .flat_map(|one| &one.points)
            .map(|point| point.0)
    };
    let least = values().fold(0.0, f64::min);
    let most = values().fold(1.0, f64::max);
    let margin = (most - least) * 0.05;
    let least = if least < 0.0 { least - margin } else { 0.0 };
    let most = most + margin;
    let mut frame = distribution_frame(Axis::linear(x, least, most), series);
    if least < 0.0 {
        frame.line(&[(0.0, 0.0), (0.0, 1.0)], Stroke::solid("#777777", 1.0));
    }
    lines(&mut frame, series, least);
    frame.write(path, title)
}

fn distribution_frame<'a>(x: Axis<'a>, series: &[Series]) -> Frame<'a> {
    let names = series.iter().enumerate();
    let legend: Vec<_> = names
        .map(|(number, one)| (Sample::Series(number), one.name.clone()))
        .collect();
    Frame::new(x, Axis::linear("share of jobs", 0.0, 1.0), false, &legend)
}

/// Draws a line with marks per distribution, starting at the left end of the axis.
fn lines(frame: &mut Frame<'_>, series: &[Series], least: f64) {
    for (number, one) in series.iter().enumerate() {
        let later = series[number + 1..]
            .iter()
            .filter(|other| coincide(one, other, frame, least))
            .count();
        let steps = steps_of(
            one.points.iter().map(|(x, y)| (x.max(least), *y)),
            (least, 0.0),
        );
        frame.line(&steps, stroke(number, 2.0 + 4.0 * later as f64));
        for share in MARKED {
            if let Some((x, _)) = one.points.iter().find(|(_, y)| *y >= share) {
                let at = frame.at(x.max(least), share);
                frame.svg.mark(
                    mark(number),
                    at,
                    4.0 + 2.5 * later as f64,
                    colour(number),
                    false,
                );
            }
        }
    }
}

/// Whether two distributions coincide in pixels at their marks.
fn coincide(one: &Series, other: &Series, frame: &Frame<'_>, least: f64) -> bool {
    MARKED.iter().chain(&[1.0]).all(|share| {
        let at = |series: &Series| {
            let found = series.points.iter().find(|(_, y)| *y >= *share);
            found.map(|(x, _)| frame.at(x.max(least), *share).0)
        };
        match (at(one), at(other)) {
            (Some(one), Some(other)) => (one - other).abs() < 2.0,
            (one, other) => one == other,
        }
    })
}

/// Draws slots over time as stacked layers. Points are a time in seconds and the slots from then on. The
/// largest layers are named, also inside the plot if there is room; the others share one layer.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn layers(path: &Path, title: &str, mut series: Vec<Series>) -> Result<(), PlotError> {
    series.sort_by(|one, other| area(other).total_cmp(&area(one)));
    let rest = series.split_off(series.len().min(LAYERS_MAX));
    if !rest.is_empty() {
        series.push(Series::sum(&format!("{} others", rest.len()), &rest));
    }
    let end = series
        .iter()
        .flat_map(|one| &one.points)
        .map(|point| point.0)
        .fold(1.0, f64::max);
    let top = Series::sum("all", &series)
        .points
        .iter()
        .map(|point| point.1)
        .fold(1.0, f64::max);
    // The legend lists the layers from top to bottom.
    let numbers = (0..series.len()).rev();
    let legend: Vec<_> = numbers
        .map(|number| (Sample::Colour(LAYERS[number]), series[number].name.clone()))
        .collect();
    let x = Axis::linear("seconds", 0.0, end);
    let y = Axis::linear("slots", 0.0, top * 1.05);
    let mut frame = Frame::new(x, y, false, &legend);
    let stacked: Vec<Vec<(f64, f64)>> = (0..=series.len())
        .map(|number| Series::sum("", &series[..number]).points)
        .collect();
    // From the top down: lower layers paint over upper ones.
    for number in (0..series.len()).rev() {
        let corners = steps_of(stacked[number + 1].iter().copied(), (0.0, 0.0));
        let last = corners.last().map_or(0.0, |corner| corner.0);
        let corners = corners
            .into_iter()
            .chain([(last, 0.0)])
            .map(|(x, y)| frame.at(x, y))
            .collect::<Vec<_>>();
        frame.svg.shape(
            &thinned(corners),
            LAYERS[number],
            Stroke::solid("#000000", 0.5),
        );
    }
    for number in 0..series.len() {
        label(&mut frame, &stacked[number], &series[number], number, end);
    }
    frame.write(path, title)
}

/// Removes corners without visible effect.
fn thinned(corners: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for corner in corners {
        let near = |last: &(f64, f64)| {
            (last.0 - corner.0).abs() < 0.25 && (last.1 - corner.1).abs() < 0.25
        };
        if !kept.last().is_some_and(near) {
            kept.push(corner);
        }
    }
    kept
}

/// Draws the name of a layer at its widest part, if it fits.
fn label(frame: &mut Frame<'_>, below: &[(f64, f64)], layer: &Series, number: usize, end: f64) {
    let height = |slots: f64| frame.at(0.0, 0.0).1 - frame.at(0.0, slots).1;
    let spans = layer.points.iter().enumerate().map(|(at, (from, slots))| {
        let to = layer.points.get(at + 1).map_or(end, |next| next.0);
        (*from, to, *slots)
    });
    let widest = spans
        .filter(|(.., slots)| height(*slots) >= 15.0)
        .max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)));
    let Some((from, to, slots)) = widest else {
        return;
    };
    let under = |x: f64| {
        below
            .iter()
            .take_while(|point| point.0 <= x)
            .last()
            .map_or(0.0, |point| point.1)
    };
    let middle = (from + to) / 2.0;
    // The layer below must be level there, or the name would cross its edge.
    let level = below.iter().all(|point| point.0 <= from || point.0 >= to);
    let room = frame.at(to, 0.0).0 - frame.at(from, 0.0).0;
    if level && room >= width_of(&layer.name) + 8.0 {
        let (x, y) = frame.at(middle, under(middle) + slots / 2.0);
        let dark = matches!(number, 0 | 2 | 4 | 6 | 8);
        let colour = if dark { "#ffffff" } else { "#000000" };
        frame
            .svg
            .coloured((x, y + 4.5), Anchor::Middle, colour, &layer.name);
    }
}

/// Returns the corners of a step function with value `begin` before its first point.
fn steps_of(points: impl Iterator<Item = (f64, f64)>, begin: (f64, f64)) -> Vec<(f64, f64)> {
    let mut corners = vec![begin];
    let mut level = begin.1;
    for (x, y) in points {
        corners.extend([(x, level), (x, y)]);
        level = y;
    }
    corners
}

/// Returns the slot seconds of a layer.
fn area(of: &Series) -> f64 {
    of.points
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].0) * pair[0].1)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, points: &[(f64, f64)]) -> Series {
        Series {
            name: name.to_owned(),
            points: points.to_vec(),
        }
    }

    #[test]
    fn series_sum_adds_steps() {
        let all = [
            series("a", &[(0.0, 2.0), (4.0, 0.0)]),
            series("b", &[(1.0, 3.0), (4.0, 1.0), (5.0, 0.0)]),
        ];
        let sum = Series::sum("all", &all);
        assert_eq!(sum.points, [(0.0, 2.0), (1.0, 5.0), (4.0, 1.0), (5.0, 0.0)]);
        assert_eq!((area(&all[0]), area(&all[1])), (8.0, 10.0));
    }

    #[test]
    fn figures_are_named_for_any_points() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        for points in [&[][..], &[(0.0, 1.0)], &[(3.0, 0.5), (70_000.0, 1.0)]] {
            let path = folder.path().join("figure.svg");
            distributions(&path, "Sojourn times", &[series("fair", points)])
                .expect("the figure is written");
            let svg = std::fs::read_to_string(&path).expect("the figure is readable");
            assert!(
                svg.contains("Sojourn times") && svg.contains("fair"),
                "{svg}"
            );
            let signed = points.iter().map(|(x, y)| (x - 5.0, *y)).collect();
            let signed = Series {
                name: "fair - hfsp".to_owned(),
                points: signed,
            };
            differences(&path, "Sojourn times", "seconds", &[signed])
                .expect("the figure is written");
            assert!(
                std::fs::read_to_string(&path)
                    .expect("the figure is readable")
                    .contains("fair - hfsp")
            );
            let many = (0..40)
                .map(|number| series(&format!("job_{number:04}"), points))
                .collect();
            layers(&path, "Map slots", many).expect("the figure is written");
            let svg = std::fs::read_to_string(&path).expect("the figure is readable");
            assert!(
                svg.contains("job_0011") && svg.contains("28 others") && !svg.contains("job_0012"),
                "{svg}"
            );
        }
    }

    #[test]
    fn unwritable_path_is_reported() {
        let error = layers(Path::new("/nowhere/figure.svg"), "t", Vec::new())
            .expect_err("the directory does not exist");
        assert!(
            error
                .to_string()
                .starts_with("cannot draw /nowhere/figure.svg: "),
            "{error}"
        );
    }
}
