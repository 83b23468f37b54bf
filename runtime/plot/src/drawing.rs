//! What every figure shares: the file it is drawn to, its size, its legend.
//!
//! Owns why a figure cannot be drawn. Does not own what is drawn.

use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use thiserror::Error;

/// Width and height in pixels.
const SIZE: (u32, u32) = (960, 540);

/// A figure could not be drawn.
#[derive(Debug, Error)]
#[error("cannot draw {path}: {what}")]
pub struct PlotError {
    pub path: PathBuf,
    /// What the system or the drawing says.
    pub what: String,
}

pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub fn draw<'a>(
    path: &'a Path,
    paint: impl FnOnce(&Area<'a>) -> Result<(), String>,
) -> Result<(), PlotError> {
    let failed = |what: String| PlotError { path: path.to_owned(), what };
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE).map_err(text).map_err(failed)?;
    paint(&area).map_err(failed)?;
    area.present().map_err(text).map_err(failed)
}

/// A chart under its title, with room for what stands below its axis and, so many pixels wide, beside it.
pub fn titled<'a, 'b>(area: &'a Area<'b>, title: &str, beside: u32) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut chart = ChartBuilder::on(area);
    chart.caption(title, ("sans-serif", 20)).margin(12).x_label_area_size(40).y_label_area_size(beside);
    chart
}

pub fn legend<'a, X: Ranged, Y: Ranged>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
) -> Result<(), String> {
    let mut labels = chart.configure_series_labels();
    labels.position(SeriesLabelPosition::LowerRight).background_style(WHITE.mix(0.8)).border_style(BLACK);
    labels.draw().map_err(text)
}

pub fn text(error: impl ToString) -> String {
    error.to_string()
}
