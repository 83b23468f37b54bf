//! Sorted associations, as `datagen associations` writes them: lines `a1,a2,...,ak` of items in order.
//!
//! Owns which associations there are, and how many of them differ in their last item only. Does not own what
//! is joined.

use crate::output::{OutputSettings, Written};
use crate::random::SplitMix;
use crate::rows::{self, Amount, Rows, RowsError};
use std::io::Write;

/// The most items of an association.
pub const ARITY_MAX: u32 = 16;

/// Associations with the same beginning lie among so many beginnings.
const WINDOW_PREFIXES: u64 = 1024;

/// What `datagen associations` is asked for.
#[derive(Clone, Debug)]
pub struct AssociationsSettings {
    /// How many associations.
    pub amount: Amount,
    /// How many different items there are; their numbers have as many digits each, so that text is in the
    /// order of numbers.
    pub items: u32,
    /// Items of an association, from 2 to [`ARITY_MAX`].
    pub arity: u32,
    /// How many associations share all items but the last, on average.
    pub sharing: u32,
    /// Chooses one set of many.
    pub seed: u64,
    pub output: OutputSettings,
}

impl AssociationsSettings {
    /// Associations of four of ten thousand items, eight with the same beginning.
    pub fn new(amount: Amount, output: OutputSettings) -> Self {
        Self { amount, items: 10_000, arity: 4, sharing: 8, seed: 42, output }
    }
}

/// Writes associations; some come twice.
///
/// # Errors
///
/// When a setting is out of range, and whatever [`crate::output::OutputError`] names.
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
pub fn generate(settings: &AssociationsSettings) -> Result<Written, RowsError> {
    let AssociationsSettings { amount, items, arity, sharing, seed, ref output } = *settings;
    rows::within("items in an association", arity.into(), 2..=ARITY_MAX.into())?;
    rows::within("items", items.into(), arity.into()..=u32::MAX.into())?;
    rows::within("associations with the same beginning", sharing.into(), 1..=u32::MAX.into())?;
    let digits = (items - 1).to_string().len();
    let rows =
        Associations { items: items.into(), arity: arity.into(), sharing: sharing.into(), digits, seed };
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
    /// An item at a place of an association, from a share of the items of its own, so that all are in order.
    fn item(&self, place: u64, random: &mut SplitMix) -> u64 {
        let first = self.items * place / self.arity;
        first + random.below(self.items * (place + 1) / self.arity - first)
    }
}

impl Rows for Associations {
    fn append(&self, index: u64, lines: &mut Vec<u8>) {
        let mut random = SplitMix::of(self.seed, index);
        let window = index / (WINDOW_PREFIXES * self.sharing);
        let prefix = window * WINDOW_PREFIXES + random.below(WINDOW_PREFIXES);
        let mut of_prefix = SplitMix::of(!self.seed, prefix);
        for place in 0..self.arity - 1 {
            let item = self.item(place, &mut of_prefix);
            write!(lines, "{item:0digits$},", digits = self.digits).expect("memory can be written to");
        }
        let last = self.item(self.arity - 1, &mut random);
        writeln!(lines, "{last:0digits$}", digits = self.digits).expect("memory can be written to");
    }
}
