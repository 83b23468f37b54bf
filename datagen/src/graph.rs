//! Edges of a graph, as `datagen graph` writes them: lines `a,b`.

use crate::output::{OutputSettings, WrittenFiles};
use crate::random::{SplitMix, stride};
use crate::rows::{self, Amount, Rows, RowsError};
use crate::text::Zipf;
use std::io::Write;

/// Settings of `datagen graph`.
#[derive(Clone, Debug)]
pub struct GraphSettings {
    /// Number of edges; duplicates can occur.
    pub amount: Amount,
    /// Number of vertices, numbered from 0; at least 2.
    pub vertices: u32,
    /// A vertex of rank `r` has edges in proportion to `r^-exponent`. The ranks for outgoing and incoming
    /// edges are independent.
    pub exponent: f64,
    /// Random seed.
    pub seed: u64,
    pub output: OutputSettings,
}

impl GraphSettings {
    /// A graph with the default number of vertices, exponent and seed.
    pub fn new(amount: Amount, output: OutputSettings) -> Self {
        Self {
            amount,
            vertices: 1_000_000,
            exponent: 0.7,
            seed: 42,
            output,
        }
    }
}

/// Writes edges without self-loops.
///
/// # Errors
///
/// Fails when a setting is out of range, and with any [`crate::output::OutputError`].
///
/// ```
/// use datagen::{graph::{self, GraphSettings}, output::OutputSettings, rows::Amount};
/// let directory = tempfile::tempdir()?;
/// let output = OutputSettings::new(directory.path().join("in"));
/// let written = graph::generate(&GraphSettings::new(Amount::Bytes(1000), output))?;
/// assert!(written.bytes >= 1000 && written.bytes < 1020);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn generate(settings: &GraphSettings) -> Result<WrittenFiles, RowsError> {
    let GraphSettings {
        amount,
        vertices,
        exponent,
        seed,
        ref output,
    } = *settings;
    rows::check_range("number of vertices", vertices.into(), 2..=u32::MAX.into())?;
    rows::check_exponent(exponent)?;
    let count = u64::from(vertices);
    let rows = Graph {
        ranks: Zipf::new(vertices, exponent),
        vertices: count,
        step: stride(count),
        seed,
    };
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
        let mut random = SplitMix::new(self.seed, index);
        let from = u64::from(self.ranks.rank(random.draw()));
        let to = (u64::from(self.ranks.rank(random.draw())) + 1) * self.step % self.vertices;
        let to = if to == from {
            (to + 1) % self.vertices
        } else {
            to
        };
        writeln!(lines, "{from},{to}").expect("writing to memory never fails");
    }
}
