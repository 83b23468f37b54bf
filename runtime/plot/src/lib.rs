//! Figures as SVG files: distributions side by side, slots over time, curves and bars with intervals.
//!
//! Owns axes, colours and legends. Does not own the numbers in them.

mod curves;
mod drawing;
mod steps;

pub use curves::{Curve, Estimate, bars, curves};
pub use drawing::PlotError;
pub use steps::{Series, differences, distributions, layers};
