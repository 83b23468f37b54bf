//! Figures as SVG files: distributions side by side, slots over time, curves and bars with intervals.
//!
//! The legend stands beside the data, a series has a mark, dashes or hatching of its own besides its colour, and
//! the title is not drawn: it belongs into the caption. Feature `png` has PNG and PDF files of them, too.

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
