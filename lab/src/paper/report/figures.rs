//! The plots of figures, as the papers draw them.
//!
//! Owns which numbers go where. Does not own axes and colours (`napreduce_sim::plot`).

use std::path::Path;

use napreduce_sim::metrics::ecdf;
use napreduce_sim::plot::{
    Curve, Estimate as Mark, PlotError, Series as Steps, bars, curves, differences, pictures,
};

use crate::paper::inference::Estimate;
use crate::paper::measure::Measured;
use crate::paper::registry::{Figure, Label, Paper, Plot, PlotKind, Point, Series};
use crate::paper::rows::{Executor, Runs};

/// The file of a figure.
pub(super) fn name(paper: &str, id: &str, executor: Executor) -> String {
    format!("{paper}-{id}{}.svg", executor.suffix("-"))
}

/// Draws a figure into `PAPER-ID.svg`, or `PAPER-ID-live.svg` and the like, and pictures of it beside that,
/// if it has a plot and anything of it was measured.
pub(super) fn draw(
    folder: &Path,
    (paper, id, figure): (&Paper, &str, &Figure),
    runs: &Runs,
    executor: Executor,
) -> Result<(), PlotError> {
    let Some(plot) = &figure.plot else { return Ok(()) };
    let of = Measured { paper, figure, runs, executor };
    let path = folder.join(name(&paper.name, id, executor));
    let title = format!("{} {id}{}: {}", paper.name, executor.suffix(", "), figure.title);
    match plot.kind {
        PlotKind::Ecdf => {
            let series: Vec<Steps> =
                plot.series.iter().filter_map(|series| distribution(of, series)).collect();
            if series.is_empty() {
                return Ok(());
            }
            differences(&path, &title, &plot.x, &series)?;
        }
        PlotKind::Curves => {
            let curve = |series: &Series| Curve {
                name: series.name.clone(),
                points: series
                    .points
                    .iter()
                    .filter_map(|point| Some((at(point.place())?, mark(of, point)?)))
                    .collect(),
            };
            let all: Vec<Curve> =
                plot.series.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect();
            if all.is_empty() {
                return Ok(());
            }
            curves(&path, &title, (&plot.x, &plot.y), &all)?;
        }
        PlotKind::Bars | PlotKind::Table => {
            if !grouped_bars(of, &path, &title, plot)? {
                return Ok(());
            }
        }
    }
    pictures(&path)
}

fn mark(of: Measured<'_>, point: &Point) -> Option<Mark> {
    let values = of.values(point.quantity());
    let found = match of.executor {
        Executor::Live => Estimate::of_median(&values, 0.95)?,
        _ if of.paper.is_deterministic(of.figure, &[point.quantity()]) => Estimate::exact(*values.first()?)?,
        _ => Estimate::of(&values, 0.95)?,
    };
    Some(Mark { middle: found.mean, low: found.low, high: found.high, published: point.published() })
}

fn distribution(of: Measured<'_>, series: &Series) -> Option<Steps> {
    let jobs = series.jobs.as_ref()?;
    let values: Vec<f64> = of.blocks(jobs).filter_map(|block| block.each(jobs)).flatten().collect();
    (!values.is_empty()).then(|| Steps { name: series.name.clone(), points: ecdf(values.into_iter()) })
}

/// Whether there was anything to draw.
fn grouped_bars(of: Measured<'_>, path: &Path, title: &str, plot: &Plot) -> Result<bool, PlotError> {
    let mut groups: Vec<(String, Vec<Option<Mark>>)> = Vec::new();
    for (number, series) in plot.series.iter().enumerate() {
        for point in &series.points {
            let name = point.place().in_words();
            let known = groups.iter().position(|(group, _)| *group == name);
            let at = known.unwrap_or_else(|| {
                groups.push((name, vec![None; plot.series.len()]));
                groups.len() - 1
            });
            groups[at].1[number] = mark(of, point);
        }
    }
    if groups.iter().all(|(_, marks)| marks.iter().all(Option::is_none)) {
        return Ok(false);
    }
    let names: Vec<&str> = plot.series.iter().map(|series| series.name.as_str()).collect();
    bars(path, title, (&plot.x, &plot.y), &names, &groups)?;
    Ok(true)
}

fn at(place: &Label) -> Option<f64> {
    match place {
        Label::At(at) => Some(*at),
        Label::Named(name) => name.parse().ok(),
    }
}
