//! Figures of step functions: distributions side by side, and slots over time.
//! Where the numbers come from is their callers' business.

use std::path::Path;

use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;

use crate::drawing::{PlotError, draw, legend, text, titled};

/// Jobs that get a colour and a line in the legend of their own; the smaller ones share the last.
const LAYERS_MAX: usize = 12;

/// A line of a figure: its name and its points.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// As the legend says.
    pub name: String,
    /// Points by ascending x.
    pub points: Vec<(f64, f64)>,
}

/// Empirical distributions side by side, on a logarithmic axis of seconds: the points are values and the
/// share of all that is at most as large.
///
/// # Errors
/// When the file cannot be written.
pub fn distributions(path: &Path, title: &str, series: &[Series]) -> Result<(), PlotError> {
    let positive = || series.iter().flat_map(|one| &one.points).map(|point| point.0).filter(|x| *x > 0.0);
    let least = positive().fold(f64::INFINITY, f64::min);
    let (least, most) =
        if least.is_finite() { (least, positive().fold(least, f64::max)) } else { (1.0, 1.0) };
    let (least, most) = (least * 0.9, most * 1.1);
    draw(path, |area| {
        let mut chart =
            titled(area, title, 50).build_cartesian_2d((least..most).log_scale(), 0.0..1.0).map_err(text)?;
        chart.configure_mesh().x_desc("seconds").y_desc("share of jobs").draw().map_err(text)?;
        lines(&mut chart, series, least)
    })
}

/// Empirical distributions of differences, which have either sign: the points are values and the share of all
/// that is at most as large.
///
/// # Errors
/// When the file cannot be written.
pub fn differences(path: &Path, title: &str, x: &str, series: &[Series]) -> Result<(), PlotError> {
    let values = || series.iter().flat_map(|one| &one.points).map(|point| point.0);
    let (least, most) = (values().fold(0.0, f64::min), values().fold(1.0, f64::max));
    let (least, most) = (least - (most - least) * 0.05, most + (most - least) * 0.05);
    draw(path, |area| {
        let mut chart = titled(area, title, 50).build_cartesian_2d(least..most, 0.0..1.0).map_err(text)?;
        chart.configure_mesh().x_desc(x).y_desc("share of jobs").draw().map_err(text)?;
        let zero = [(0.0, 0.0), (0.0, 1.0)];
        chart.draw_series(LineSeries::new(zero, BLACK.mix(0.5).stroke_width(1))).map_err(text)?;
        lines(&mut chart, series, least)
    })
}

/// A line for each distribution, from the left end of the axis on, and the legend.
fn lines<'a, X: Ranged<ValueType = f64>, Y: Ranged<ValueType = f64>>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    series: &[Series],
    least: f64,
) -> Result<(), String> {
    for (number, one) in series.iter().enumerate() {
        let colour = Palette99::pick(number).to_rgba();
        let steps = steps_of(one.points.iter().map(|(x, y)| (x.max(least), *y)), (least, 0.0));
        let line = chart.draw_series(LineSeries::new(steps, colour.stroke_width(2))).map_err(text)?;
        let sample = move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2));
        line.label(&one.name).legend(sample);
    }
    legend(chart)
}

/// Slots held over time, one layer on the other: the points of each layer are seconds and how many it holds
/// from then on. The largest layers are named, the rest share one.
///
/// # Errors
/// When the file cannot be written.
pub fn layers(path: &Path, title: &str, mut series: Vec<Series>) -> Result<(), PlotError> {
    series.sort_by(|one, other| area(other).total_cmp(&area(one)));
    let rest = series.split_off(series.len().min(LAYERS_MAX));
    if !rest.is_empty() {
        series.push(sum_of(&format!("{} others", rest.len()), &rest));
    }
    let end = series.iter().flat_map(|one| &one.points).map(|point| point.0).fold(1.0, f64::max);
    let top = sum_of("all", &series).points.iter().map(|point| point.1).fold(1.0, f64::max);
    draw(path, |area| {
        let mut chart =
            titled(area, title, 50).build_cartesian_2d(0.0..end, 0.0..top * 1.05).map_err(text)?;
        chart.configure_mesh().disable_mesh().x_desc("seconds").y_desc("slots").draw().map_err(text)?;
        // From the top down: what is above is painted over by what is below.
        for number in (0..series.len()).rev() {
            let colour = Palette99::pick(number).to_rgba();
            let stacked = sum_of("", &series[..=number]).points;
            let area = AreaSeries::new(steps_of(stacked.into_iter(), (0.0, 0.0)), 0.0, colour);
            let sample = move |(x, y)| Rectangle::new([(x, y - 5), (x + 20, y + 5)], colour.filled());
            chart.draw_series(area).map_err(text)?.label(&series[number].name).legend(sample);
        }
        legend(&mut chart)
    })
}

/// The corners of a step function that is at `begin` until its first point.
fn steps_of(points: impl Iterator<Item = (f64, f64)>, begin: (f64, f64)) -> Vec<(f64, f64)> {
    let (mut corners, mut level) = (vec![begin], begin.1);
    for (x, y) in points {
        corners.extend([(x, level), (x, y)]);
        level = y;
    }
    corners
}

/// Slot seconds of a layer.
fn area(of: &Series) -> f64 {
    of.points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * pair[0].1).sum()
}

/// Several step functions as one.
fn sum_of(name: &str, layers: &[Series]) -> Series {
    let mut changes: Vec<(f64, f64)> = Vec::new();
    for layer in layers {
        let mut level = 0.0;
        for (x, y) in &layer.points {
            changes.push((*x, y - level));
            level = *y;
        }
    }
    changes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut points, mut level) = (Vec::<(f64, f64)>::new(), 0.0);
    for (x, change) in changes {
        level += change;
        match points.last_mut() {
            Some(last) if last.0 == x => last.1 = level,
            _ => points.push((x, level)),
        }
    }
    Series { name: name.to_owned(), points }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, points: &[(f64, f64)]) -> Series {
        Series { name: name.to_owned(), points: points.to_vec() }
    }

    #[test]
    fn layers_add_up() {
        let all =
            [series("a", &[(0.0, 2.0), (4.0, 0.0)]), series("b", &[(1.0, 3.0), (4.0, 1.0), (5.0, 0.0)])];
        let sum = sum_of("all", &all);
        assert_eq!(sum.points, [(0.0, 2.0), (1.0, 5.0), (4.0, 1.0), (5.0, 0.0)]);
        assert_eq!((area(&all[0]), area(&all[1])), (8.0, 10.0));
    }

    #[test]
    fn figures_name_what_they_show_whatever_the_numbers() {
        let folder = tempfile::tempdir().expect("a folder");
        for points in [&[][..], &[(0.0, 1.0)], &[(3.0, 0.5), (70_000.0, 1.0)]] {
            let path = folder.path().join("figure.svg");
            distributions(&path, "Sojourn times", &[series("fair", points)]).expect("a figure");
            let svg = std::fs::read_to_string(&path).expect("a file");
            assert!(svg.contains("Sojourn times") && svg.contains("fair"), "{svg}");
            let signed = points.iter().map(|(x, y)| (x - 5.0, *y)).collect();
            let signed = Series { name: "fair - hfsp".to_owned(), points: signed };
            differences(&path, "Sojourn times", "seconds", &[signed]).expect("a figure");
            assert!(std::fs::read_to_string(&path).expect("a file").contains("fair - hfsp"));
            let many = (0..40).map(|number| series(&format!("job_{number:04}"), points)).collect();
            layers(&path, "Map slots", many).expect("a figure");
            let svg = std::fs::read_to_string(&path).expect("a file");
            assert!(
                svg.contains("job_0011") && svg.contains("28 others") && !svg.contains("job_0012"),
                "{svg}"
            );
        }
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let error = layers(Path::new("/nowhere/figure.svg"), "t", Vec::new()).expect_err("no such folder");
        assert!(error.to_string().starts_with("cannot draw /nowhere/figure.svg: "), "{error}");
    }
}
