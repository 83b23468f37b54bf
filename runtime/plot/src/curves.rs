//! Figures of estimates with their intervals: curves over something that was varied, and bars for a few ways
//! side by side. Which numbers belong together is the reports' business.

use std::path::Path;

use plotters::prelude::*;

use crate::drawing::{PlotError, draw, legend, text, titled};

/// Half the width of the cross strokes of an interval, as a part of the axis.
const STROKE: f64 = 0.006;
/// The radius of a hollow mark, in pixels.
const MARK: i32 = 6;

/// What is known of a figure: a value in the middle, and the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// What is drawn as the value.
    pub middle: f64,
    pub low: f64,
    pub high: f64,
    /// What somebody else found, drawn as a hollow mark.
    pub published: Option<f64>,
}

impl Estimate {
    fn top(&self) -> f64 {
        self.high.max(self.published.unwrap_or(self.high))
    }
}

/// One curve: its name, and for each x an estimate.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// As the legend says.
    pub name: String,
    /// By ascending x.
    pub points: Vec<(f64, Estimate)>,
}

/// Curves over a common x. The y axis begins at 0, so that lengths can be compared.
///
/// # Errors
/// When the file cannot be written.
pub fn curves(path: &Path, title: &str, axes: (&str, &str), all: &[Curve]) -> Result<(), PlotError> {
    let points = || all.iter().flat_map(|curve| &curve.points);
    let least = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let most = points().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    let (least, most) = if least < most { (least, most) } else { (least.min(0.0), least.clamp(1.0, 1e9)) };
    let margin = (most - least) * 0.05;
    let top = points().map(|(_, estimate)| estimate.top()).fold(1e-3, f64::max) * 1.3;
    let least_y = points().map(|(_, estimate)| estimate.low).fold(0.0, f64::min) * 1.1;
    draw(path, |area| {
        let mut chart = titled(area, title, 60)
            .build_cartesian_2d(least - margin..most + margin, least_y..top)
            .map_err(text)?;
        chart.configure_mesh().x_desc(axes.0).y_desc(axes.1).draw().map_err(text)?;
        for (number, curve) in all.iter().enumerate() {
            let colour = Palette99::pick(number).to_rgba();
            let medians = curve.points.iter().map(|(x, estimate)| (*x, estimate.middle));
            let line = chart.draw_series(LineSeries::new(medians, colour.stroke_width(2))).map_err(text)?;
            let sample = move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2));
            line.label(&curve.name).legend(sample);
            let half = (most - least) * STROKE;
            let strokes = curve.points.iter().flat_map(|(x, estimate)| interval(*x, half, estimate));
            let strokes = strokes.map(|stroke| PathElement::new(stroke, colour.stroke_width(1)));
            chart.draw_series(strokes).map_err(text)?;
            let published = curve.points.iter().filter_map(|(x, estimate)| Some((*x, estimate.published?)));
            chart
                .draw_series(published.map(|at| Circle::new(at, MARK, colour.stroke_width(2))))
                .map_err(text)?;
        }
        legend(&mut chart)
    })
}

/// The strokes of one interval: a line from end to end and one across each end.
fn interval(x: f64, half: f64, estimate: &Estimate) -> [[(f64, f64); 2]; 3] {
    let (low, high) = (estimate.low, estimate.high);
    [[(x, low), (x, high)], [(x - half, low), (x + half, low)], [(x - half, high), (x + half, high)]]
}

/// Groups of bars: each group has a name and one value for each of `series`, in their order; none where there
/// is no value.
///
/// # Errors
/// When the file cannot be written.
pub fn bars(
    path: &Path,
    title: &str,
    y: &str,
    series: &[&str],
    groups: &[(String, Vec<Option<Estimate>>)],
) -> Result<(), PlotError> {
    let values = || groups.iter().flat_map(|group| group.1.iter().flatten());
    let top = values().map(Estimate::top).fold(1e-3, f64::max) * 1.3;
    let width = 0.8 / series.len().max(1) as f64;
    draw(path, |area| {
        let names: Vec<String> = groups.iter().map(|group| group.0.clone()).collect();
        let mut chart = titled(area, title, 60)
            .build_cartesian_2d(-0.5..groups.len().max(1) as f64 - 0.5, 0.0..top)
            .map_err(text)?;
        let name_of = |x: &f64| match x.fract() == 0.0 && *x >= 0.0 {
            true => names.get(*x as usize).cloned().unwrap_or_default(),
            false => String::new(),
        };
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh().x_labels(groups.len() * 2 + 1).x_label_formatter(&name_of).y_desc(y);
        mesh.draw().map_err(text)?;
        for (number, name) in series.iter().enumerate() {
            let colour = Palette99::pick(number).to_rgba();
            let of_group = |at: usize| at as f64 - 0.4 + width * number as f64;
            let found = groups.iter().enumerate();
            let found = found.filter_map(|(at, group)| Some((of_group(at), group.1.get(number)?.as_ref()?)));
            let found: Vec<(f64, &Estimate)> = found.collect();
            let bar = |(left, estimate): &(f64, &Estimate)| {
                Rectangle::new([(*left, 0.0), (left + width * 0.95, estimate.middle)], colour.filled())
            };
            let sample = move |(x, y)| Rectangle::new([(x, y - 5), (x + 20, y + 5)], colour.filled());
            chart.draw_series(found.iter().map(bar)).map_err(text)?.label(*name).legend(sample);
            let strokes =
                found.iter().flat_map(|(left, estimate)| interval(left + width / 2.0, 0.03, estimate));
            let strokes = strokes.map(|stroke| PathElement::new(stroke, BLACK.stroke_width(1)));
            chart.draw_series(strokes).map_err(text)?;
            let published = found.iter().filter_map(|(left, at)| Some((left + width / 2.0, at.published?)));
            let marks = published.map(|at| Circle::new(at, MARK, BLACK.stroke_width(2)));
            chart.draw_series(marks).map_err(text)?;
        }
        legend(&mut chart)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(middle: f64) -> Estimate {
        Estimate { middle, low: middle - 0.5, high: middle + 0.5, published: Some(middle * 2.0) }
    }

    fn svg(path: &Path) -> String {
        std::fs::read_to_string(path).expect("a file")
    }

    #[test]
    fn curves_are_named_whatever_their_points() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("curves.svg");
        let many = vec![(10.0, about(1.0)), (90.0, about(3.0))];
        for points in [vec![], vec![(50.0, about(8.0))], many] {
            let all = ["suspend", "kill"].map(|name| Curve { name: name.to_owned(), points: points.clone() });
            curves(&path, "Sojourn of the high job", ("r, %", "seconds"), &all).expect("a figure");
            let svg = svg(&path);
            assert!(svg.contains("Sojourn of the high job") && svg.contains("suspend"), "{svg}");
        }
    }

    #[test]
    fn bars_are_named_and_may_be_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bars.svg");
        let groups = [
            ("hard cap".to_owned(), vec![Some(about(7.0)), Some(about(28.0))]),
            ("kill".to_owned(), vec![None, Some(about(24.0))]),
        ];
        bars(&path, "Natjam", "seconds", &["production", "research"], &groups).expect("a figure");
        let svg = svg(&path);
        assert!(svg.contains("hard cap") && svg.contains("kill") && svg.contains("production"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3, "a mark for each that was published");
        bars(&path, "Natjam", "seconds", &[], &[]).expect("a figure");
    }
}
