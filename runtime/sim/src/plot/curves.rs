//! Figures of estimates with confidence intervals: curves over a varied parameter, and grouped bars.

use std::path::Path;

use super::frame::{Axis, Frame, PlotError, Sample, colour, mark, stroke};

/// Half the width of the cross strokes of an interval, in pixels.
const STROKE: f64 = 5.0;
/// Radii of our marks, and of hollow ones, in pixels.
const OURS: f64 = 4.0;
const HOLLOW: f64 = 6.5;

/// A value with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The plotted value.
    pub middle: f64,
    pub low: f64,
    pub high: f64,
    /// A published value, drawn as a hollow mark.
    pub published: Option<f64>,
}

impl Estimate {
    fn top(&self) -> f64 {
        self.high.max(self.published.unwrap_or(self.high))
    }

    fn bottom(&self) -> f64 {
        self.low.min(self.published.unwrap_or(self.low))
    }
}

/// A curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Its legend entry.
    pub name: String,
    /// In ascending x.
    pub points: Vec<(f64, Estimate)>,
}

/// Draws curves over a common x. The y axis starts at 0, so that lengths are comparable.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn curves(
    path: &Path,
    title: &str,
    axes: (&str, &str),
    all: &[Curve],
) -> Result<(), PlotError> {
    let points = || all.iter().flat_map(|curve| &curve.points);
    let least = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let most = points()
        .map(|point| point.0)
        .fold(f64::NEG_INFINITY, f64::max);
    let (least, most) = if least < most {
        (least, most)
    } else {
        (least.min(0.0), least.clamp(1.0, 1e9))
    };
    let margin = (most - least) * 0.05;
    let estimates: Vec<Estimate> = points().map(|(_, estimate)| *estimate).collect();
    let names = all.iter().map(|curve| curve.name.clone()).enumerate();
    let legend = names
        .map(|(number, name)| (Sample::Series(number), name))
        .collect();
    let x = Axis::linear(axes.0, least - margin, most + margin);
    let mut frame = Frame::new(
        x,
        y_axis(axes.1, &estimates),
        false,
        &with_notes(legend, &estimates),
    );
    for (number, curve) in all.iter().enumerate() {
        let middles: Vec<(f64, f64)> = curve
            .points
            .iter()
            .map(|(x, estimate)| (*x, estimate.middle))
            .collect();
        // Of coinciding curves the later ones are narrower, so that all remain visible.
        let later = all[number + 1..]
            .iter()
            .filter(|other| coincide(curve, other, &frame))
            .count();
        frame.line(&middles, stroke(number, 2.0 + 4.0 * later as f64));
        for (x, estimate) in &curve.points {
            frame.interval(*x, (estimate.low, estimate.high), STROKE, colour(number));
            let at = frame.at(*x, estimate.middle);
            frame.svg.mark(
                mark(number),
                at,
                OURS + 2.5 * later as f64,
                colour(number),
                false,
            );
            if let Some(published) = estimate.published {
                let at = frame.at(*x, published);
                frame
                    .svg
                    .mark(mark(number), at, HOLLOW, colour(number), true);
            }
        }
    }
    frame.write(path, title)
}

/// Whether two curves coincide in pixels.
fn coincide(one: &Curve, other: &Curve, frame: &Frame<'_>) -> bool {
    let at = |(x, estimate): &(f64, Estimate)| frame.at(*x, estimate.middle);
    one.points.len() == other.points.len()
        && one.points.iter().zip(&other.points).all(|(one, other)| {
            let one = at(one);
            let other = at(other);
            (one.0 - other.0).abs() < 2.0 && (one.1 - other.1).abs() < 2.0
        })
}

/// Returns the y axis over all estimates, starting at or below 0.
fn y_axis<'a>(label: &'a str, estimates: &[Estimate]) -> Axis<'a> {
    let top = estimates.iter().map(Estimate::top).fold(1e-3, f64::max) * 1.05;
    let bottom = estimates.iter().map(Estimate::bottom).fold(0.0, f64::min) * 1.05;
    Axis::linear(label, bottom, top)
}

/// Adds entries for hollow marks and intervals to the legend, if there are any.
fn with_notes(mut legend: Vec<(Sample, String)>, estimates: &[Estimate]) -> Vec<(Sample, String)> {
    if estimates
        .iter()
        .any(|estimate| estimate.published.is_some())
    {
        legend.push((Sample::Hollow(0), "hollow: published".to_owned()));
    }
    if estimates
        .iter()
        .any(|estimate| estimate.low < estimate.high)
    {
        legend.push((
            Sample::Interval,
            "95 % interval; the range of fewer than six".to_owned(),
        ));
    }
    legend
}

/// Draws groups of bars: each group has one optional value per series.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn bars(
    path: &Path,
    title: &str,
    axes: (&str, &str),
    series: &[&str],
    groups: &[(String, Vec<Option<Estimate>>)],
) -> Result<(), PlotError> {
    let estimates: Vec<Estimate> = groups
        .iter()
        .flat_map(|group| group.1.iter().flatten())
        .copied()
        .collect();
    let names = series.iter().enumerate();
    let legend = names
        .map(|(number, name)| (Sample::Fill(number), (*name).to_owned()))
        .collect();
    let x = Axis::linear(axes.0, -0.5, groups.len().max(1) as f64 - 0.5);
    let mut frame = Frame::new(
        x,
        y_axis(axes.1, &estimates),
        true,
        &with_notes(legend, &estimates),
    );
    let (_, bottom) = frame.corner();
    let width = 0.8 / series.len().max(1) as f64;
    for (at, (name, values)) in groups.iter().enumerate() {
        let middle = frame.at(at as f64, 0.0).0;
        frame
            .svg
            .text((middle, bottom + 20.0), super::svg::Anchor::Middle, name);
        for (number, estimate) in values.iter().enumerate() {
            let Some(estimate) = estimate else { continue };
            let left = at as f64 - 0.4 + width * number as f64;
            let from = frame.at(left, 0.0);
            let to = frame.at(left + width * 0.94, estimate.middle);
            let high = from.1.min(to.1);
            let low = from.1.max(to.1);
            frame.fill((from.0, high), (to.0, low), number);
            let x = left + width * 0.47;
            frame.interval(x, (estimate.low, estimate.high), STROKE, "#000000");
            if let Some(published) = estimate.published {
                let at = frame.at(x, published);
                frame.svg.mark(mark(0), at, HOLLOW, "#000000", true);
            }
        }
    }
    let zero = [
        frame.at(-0.5, 0.0),
        frame.at(groups.len().max(1) as f64 - 0.5, 0.0),
    ];
    frame
        .svg
        .line(&zero, super::svg::Stroke::solid("#000000", 1.0));
    frame.write(path, title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(middle: f64) -> Estimate {
        Estimate {
            middle,
            low: middle - 0.5,
            high: middle + 0.5,
            published: Some(middle * 2.0),
        }
    }

    fn svg(path: &Path) -> String {
        std::fs::read_to_string(path).expect("the figure is readable")
    }

    #[test]
    fn curves_are_named_for_any_points() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("curves.svg");
        let many = vec![(10.0, about(1.0)), (90.0, about(3.0))];
        for points in [vec![], vec![(50.0, about(8.0))], many] {
            let all = ["suspend", "kill"].map(|name| Curve {
                name: name.to_owned(),
                points: points.clone(),
            });
            curves(&path, "Sojourn of the high job", ("r, %", "seconds"), &all)
                .expect("the figure is written");
            let svg = svg(&path);
            assert!(
                svg.contains("Sojourn of the high job") && svg.contains("suspend"),
                "{svg}"
            );
            assert_eq!(svg.contains("hollow: published"), !points.is_empty());
        }
    }

    #[test]
    fn coinciding_curves_stay_visible() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("curves.svg");
        let points = vec![(10.0, about(1.0)), (90.0, about(3.0))];
        let all = ["a", "b", "c"].map(|name| Curve {
            name: name.to_owned(),
            points: points.clone(),
        });
        curves(&path, "t", ("x", "y"), &all).expect("the figure is written");
        let svg = svg(&path);
        for (number, width) in ["10", "6", "2"].iter().enumerate() {
            let line = format!("stroke=\"{}\" stroke-width=\"{width}\"", colour(number));
            assert!(svg.contains(&line), "{line} is missing in {svg}");
        }
    }

    #[test]
    fn bars_are_named_and_optional() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("bars.svg");
        let groups = [
            (
                "hard cap".to_owned(),
                vec![Some(about(7.0)), Some(about(28.0))],
            ),
            ("kill".to_owned(), vec![None, Some(about(24.0))]),
        ];
        let axes = ("way", "seconds");
        bars(&path, "Natjam", axes, &["production", "research"], &groups)
            .expect("the figure is written");
        let svg = svg(&path);
        assert!(
            svg.contains("hard cap") && svg.contains("kill") && svg.contains("production"),
            "{svg}"
        );
        // One of the marks is in the legend.
        assert_eq!(
            svg.matches("<circle").count(),
            3 + 1,
            "one mark per published value"
        );
        bars(&path, "Natjam", axes, &[], &[]).expect("the figure is written");
    }
}
