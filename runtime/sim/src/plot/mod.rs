//! Figures as SVG files: distributions, slots over time, curves and bars with intervals.
//!
//! The legend is next to the data. Series differ by mark, dashes or hatching as well as by colour. The title
//! is metadata only, since papers have captions.

mod curves;
mod frame;
mod steps;
mod svg;

pub use curves::{Curve, Estimate, bars, curves};
pub use frame::PlotError;
pub use steps::{LAYERS_MAX, Series, differences, distributions, layers};
