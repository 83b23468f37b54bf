//! Figures as SVG files: distributions, slots over time, curves and bars with intervals.
//!
//! The legend is next to the data. Series differ by mark, dashes or hatching as well as by colour. The title
//! is metadata only, since papers have captions. The feature `png` adds PNG and PDF output.

mod curves;
mod frame;
#[cfg(feature = "png")]
mod pdf;
#[cfg(feature = "png")]
mod png;
mod steps;
mod svg;

pub use curves::{Curve, Estimate, bars, curves};
pub use frame::PlotError;
#[cfg(feature = "png")]
pub use png::pictures;
pub use steps::{LAYERS_MAX, Series, differences, distributions, layers};
