//! Movies with their reviews, as `datagen movies` writes them: lines `movie:rater_rating,rater_rating,...`.
//!
//! Owns what a movie looks like. Does not own how many there are in a file.

use crate::output::{OutputSettings, Written};
use crate::random::{SplitMix, stride};
use crate::rows::{self, Amount, Rows, RowsError};
use crate::text::Zipf;
use std::io::Write;

/// No movie has more reviews.
pub const REVIEWS_MAX: u32 = 10_000;

/// What `datagen movies` is asked for.
#[derive(Clone, Debug)]
pub struct MoviesSettings {
    /// How many movies, numbered from 1 on.
    pub amount: Amount,
    /// Raters are numbered from 0 on; each reviews a movie at most once.
    pub raters: u32,
    /// A movie has `n` reviews, from 1 to [`REVIEWS_MAX`] and the number of raters, in proportion to
    /// `n^-exponent`.
    pub reviews_exponent: f64,
    /// Chooses one set of many.
    pub seed: u64,
    pub output: OutputSettings,
}

impl MoviesSettings {
    /// Movies with the standard raters, exponent and seed.
    pub fn new(amount: Amount, output: OutputSettings) -> Self {
        Self { amount, raters: 100_000, reviews_exponent: 1.2, seed: 42, output }
    }
}

/// Writes movies. A rating is 1 to 5, about the movie's own mean; raters come in no order.
///
/// # Errors
///
/// When there are no raters or the exponent is out of range, and whatever
/// [`crate::output::OutputError`] names.
///
/// ```
/// use datagen::{movies::{self, MoviesSettings}, output::OutputSettings, rows::Amount};
/// let directory = tempfile::tempdir()?;
/// let output = OutputSettings::new(directory.path().join("in"));
/// let written = movies::generate(&MoviesSettings::new(Amount::Rows(20), output))?;
/// assert_eq!(std::fs::read_to_string(&written.files[0])?.lines().count(), 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn generate(settings: &MoviesSettings) -> Result<Written, RowsError> {
    let MoviesSettings { amount, raters, reviews_exponent, seed, ref output } = *settings;
    rows::within("raters", raters.into(), 1..=u32::MAX.into())?;
    rows::exponent_within(reviews_exponent)?;
    let reviews = Zipf::new(raters.min(REVIEWS_MAX), reviews_exponent);
    Ok(rows::write(&Movies { reviews, raters: raters.into(), seed }, amount, output)?)
}

struct Movies {
    reviews: Zipf,
    raters: u64,
    seed: u64,
}

impl Rows for Movies {
    fn append(&self, index: u64, lines: &mut Vec<u8>) {
        let mut random = SplitMix::of(self.seed, index);
        let reviews = u64::from(self.reviews.rank(random.draw())) + 1;
        let liked = random.below(9);
        let step = stride(reviews);
        let mut share = random.below(reviews);
        let written = write!(lines, "{}:", index + 1).and_then(|()| {
            for review in 0..reviews {
                // One rater of each of as many shares of them: nobody comes twice.
                let first = self.raters * share / reviews;
                let rater = first + random.below(self.raters * (share + 1) / reviews - first);
                let rating = 1 + (liked + random.below(9)) / 4;
                let comma = if review == 0 { "" } else { "," };
                write!(lines, "{comma}{rater}_{rating}")?;
                share = (share + step) % reviews;
            }
            writeln!(lines)
        });
        written.expect("memory can be written to");
    }
}
