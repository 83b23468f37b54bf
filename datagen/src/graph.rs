//! The edges of a graph, as `datagen graph` writes them: lines `a,b`.
//!
//! Owns between which vertices there are edges. Does not own what is asked of the graph.

use crate::output::{OutputSettings, Written};
use crate::random::{SplitMix, stride};
use crate::rows::{self, Amount, Rows, RowsError};
use crate::text::Zipf;
use std::io::Write;

/// What `datagen graph` is asked for.
#[derive(Clone, Debug)]
pub struct GraphSettings {
    /// How many edges; some come twice.
    pub amount: Amount,
    /// Vertices are numbered from 0 on; at least 2.
    pub vertices: u32,
    /// A vertex of rank `r` has edges in proportion to `r^-exponent`; whoever has many out need not
    /// have many in.
    pub exponent: f64,
    /// Chooses one graph of many.
    pub seed: u64,
    pub output: OutputSettings,
}

impl GraphSettings {
    /// A graph with the standard vertices, exponent and seed.
    pub fn new(amount: Amount, output: OutputSettings) -> Self {
        Self { amount, vertices: 1_000_000, exponent: 0.7, seed: 42, output }
    }
}

/// Writes edges; none leads to where it comes from.
///
/// # Errors
///
/// When a setting is out of range, and whatever [`crate::output::OutputError`] names.
///
/// ```
/// use datagen::{graph::{self, GraphSettings}, output::OutputSettings, rows::Amount};
/// let directory = tempfile::tempdir()?;
/// let output = OutputSettings::new(directory.path().join("in"));
/// let written = graph::generate(&GraphSettings::new(Amount::Bytes(1000), output))?;
/// assert!(written.bytes >= 1000 && written.bytes < 1020);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn generate(settings: &GraphSettings) -> Result<Written, RowsError> {
    let GraphSettings { amount, vertices, exponent, seed, ref output } = *settings;
    rows::within("vertices", vertices.into(), 2..=u32::MAX.into())?;
    rows::exponent_within(exponent)?;
    let count = u64::from(vertices);
    let rows = Graph { ranks: Zipf::new(vertices, exponent), vertices: count, step: stride(count), seed };
    Ok(rows::write(&rows, amount, output)?)
}

struct Graph {
    ranks: Zipf,
    vertices: u64,
    step: u64,
    seed: u64,
}

impl Rows for Graph {
    fn append(&self, index: u64, lines: &mut Vec<u8>) {
        let mut random = SplitMix::of(self.seed, index);
        let from = u64::from(self.ranks.rank(random.draw()));
        let to = (u64::from(self.ranks.rank(random.draw())) + 1) * self.step % self.vertices;
        let to = if to == from { (to + 1) % self.vertices } else { to };
        writeln!(lines, "{from},{to}").expect("memory can be written to");
    }
}
