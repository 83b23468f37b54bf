//! Movies with their reviews, as `datagen movies` writes them: lines `movie:rater_rating,rater_rating,...`.

use crate::output::{OutputSettings, WrittenFiles};
use crate::random::{SplitMix, stride};
use crate::rows::{self, Amount, Rows, RowsError};
use crate::text::Zipf;
use std::io::Write;

/// Largest number of reviews of a movie.
pub const REVIEWS_MAX: u32 = 10_000;

/// Settings of `datagen movies`.
#[derive(Clone, Debug)]
pub struct MoviesSettings {
    /// Number of movies, numbered from 1.
    pub amount: Amount,
    /// Number of raters, numbered from 0; each reviews a movie at most once.
    pub raters: u32,
    /// A movie has `n` reviews in proportion to `n^-exponent`, where `n` is at least 1 and at most
    /// [`REVIEWS_MAX`] and the number of raters.
    pub reviews_exponent: f64,
    /// Random seed.
    pub seed: u64,
    pub output: OutputSettings,
}

impl MoviesSettings {
    /// Movies with the default number of raters, exponent and seed.
    pub fn new(amount: Amount, output: OutputSettings) -> Self {
        Self {
            amount,
            raters: 100_000,
            reviews_exponent: 1.2,
            seed: 42,
            output,
        }
    }
}

/// Writes movies. Ratings are 1 to 5 around a mean drawn for each movie; raters are in no particular order.
///
/// # Errors
///
/// Fails when there are no raters or the exponent is out of range, and with any
/// [`crate::output::OutputError`].
///
/// ```
/// use datagen::{movies::{self, MoviesSettings}, output::OutputSettings, rows::Amount};
/// let directory = tempfile::tempdir()?;
/// let output = OutputSettings::new(directory.path().join("in"));
/// let written = movies::generate(&MoviesSettings::new(Amount::Rows(20), output))?;
/// assert_eq!(std::fs::read_to_string(&written.files[0])?.lines().count(), 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn generate(settings: &MoviesSettings) -> Result<WrittenFiles, RowsError> {
    let MoviesSettings {
        amount,
        raters,
        reviews_exponent,
        seed,
        ref output,
    } = *settings;
    rows::check_range("number of raters", raters.into(), 1..=u32::MAX.into())?;
    rows::check_exponent(reviews_exponent)?;
    let reviews = Zipf::new(raters.min(REVIEWS_MAX), reviews_exponent);
    Ok(rows::write(
        &Movies {
            reviews,
            raters: raters.into(),
            seed,
        },
        amount,
        output,
    )?)
}

struct Movies {
    reviews: Zipf,
    raters: u64,
    seed: u64,
}

impl Rows for Movies {
    fn append(&self, index: u64, lines: &mut Vec<u8>) {
        let mut random = SplitMix::new(self.seed, index);
        let reviews = u64::from(self.reviews.rank(random.draw())) + 1;
        let mean = random.below(9);
        let step = stride(reviews);
        let mut share = random.below(reviews);
        let written = write!(lines, "{}:", index + 1).and_then(|()| {
            for review in 0..reviews {
                // Raters are divided into one share per review, so that no rater reviews the movie twice.
                let first = self.raters * share / reviews;
                let rater = first + random.below(self.raters * (share + 1) / reviews - first);
                let rating = 1 + (mean + random.below(9)) / 4;
                let comma = if review == 0 { "" } else { "," };
                write!(lines, "{comma}{rater}_{rating}")?;
                share = (share + step) % reviews;
            }
            writeln!(lines)
        });
        written.expect("writing to memory never fails");
    }
}
