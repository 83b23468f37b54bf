//! Figures as SVG files: distributions side by side, slots over time, curves and bars with intervals.
//!
//! Feature `png` has pictures of them, too.
//!
//! Owns axes, colours and legends. Does not own the numbers in them.

mod curves;
mod drawing;
#[cfg(feature = "png")]
mod png;
mod steps;

pub use curves::{Curve, Estimate, bars, curves};
pub use drawing::PlotError;
#[cfg(feature = "png")]
pub use png::png;
pub use steps::{Series, differences, distributions, layers};
