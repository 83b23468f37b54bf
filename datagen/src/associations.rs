//! Sorted associations, as `datagen associations` writes them: lines `a1,a2,...,ak` of ascending items.

use crate::output::{OutputSettings, WrittenFiles};
use crate::random::SplitMix;
use crate::rows::{self, Amount, Rows, RowsError};
use std::io::Write;

/// Largest number of items in an association.
pub const ARITY_MAX: u32 = 16;

/// Number of prefixes from which consecutive associations draw theirs.
const WINDOW_PREFIXES: u64 = 1024;

/// Settings of `datagen associations`.
#[derive(Clone, Debug)]
pub struct AssociationsSettings {
    pub amount: Amount,
    /// Number of distinct items. Item numbers are zero-padded to one width, so that text order is numeric
    /// order.
    pub items: u32,
    /// Number of items in an association, from 2 to [`ARITY_MAX`].
    pub arity: u32,
    /// Average number of associations that share all items but the last.
    pub sharing: u32,
    /// Random seed.
    pub seed: u64,
    pub output: OutputSettings,
}

impl AssociationsSettings {
    /// Associations of 4 out of 10,000 items, 8 with the same prefix.
    pub fn new(amount: Amount, output: OutputSettings) -> Self {
        Self {
            amount,
            items: 10_000,
            arity: 4,
            sharing: 8,
            seed: 42,
            output,
        }
    }
}

/// Writes associations; duplicates can occur.
///
/// # Errors
///
/// Fails when a setting is out of range, and with any [`crate::output::OutputError`].
///
/// ```
/// use datagen::{associations::{self, AssociationsSettings}, output::OutputSettings, rows::Amount};
/// let directory = tempfile::tempdir()?;
/// let output = OutputSettings::new(directory.path().join("in"));
/// let written = associations::generate(&AssociationsSettings::new(Amount::Rows(20), output))?;
/// let text = std::fs::read_to_string(&written.files[0])?;
/// assert!(text.lines().all(|line| line.split(',').count() == 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn generate(settings: &AssociationsSettings) -> Result<WrittenFiles, RowsError> {
    let AssociationsSettings {
        amount,
        items,
        arity,
        sharing,
        seed,
        ref output,
    } = *settings;
    rows::check_range(
        "number of items in an association",
        arity.into(),
        2..=ARITY_MAX.into(),
    )?;
    rows::check_range(
        "number of items",
        items.into(),
        arity.into()..=u32::MAX.into(),
    )?;
    rows::check_range(
        "number of associations with the same prefix",
        sharing.into(),
        1..=u32::MAX.into(),
    )?;
    let digits = (items - 1).to_string().len();
    let rows = Associations {
        items: items.into(),
        arity: arity.into(),
        sharing: sharing.into(),
        digits,
        seed,
    };
    Ok(rows::write(&rows, amount, output)?)
}

struct Associations {
    items: u64,
    arity: u64,
    sharing: u64,
    digits: usize,
    seed: u64,
}

impl Associations {
    /// Draws the item at `place` from its own share of the items, which keeps the association sorted.
    fn item(&self, place: u64, random: &mut SplitMix) -> u64 {
        let first = self.items * place / self.arity;
        first + random.below(self.items * (place + 1) / self.arity - first)
    }
}

impl Rows for Associations {
    fn append(&self, index: u64, lines: &mut Vec<u8>) {
        let mut random = SplitMix::new(self.seed, index);
        let window = index / (WINDOW_PREFIXES * self.sharing);
        let prefix = window * WINDOW_PREFIXES + random.below(WINDOW_PREFIXES);
        let mut prefix_random = SplitMix::new(!self.seed, prefix);
        for place in 0..self.arity - 1 {
            let item = self.item(place, &mut prefix_random);
            write!(lines, "{item:0digits$},", digits = self.digits)
                .expect("writing to memory never fails");
        }
        let last = self.item(self.arity - 1, &mut random);
        writeln!(lines, "{last:0digits$}", digits = self.digits)
            .expect("writing to memory never fails");
    }
}
