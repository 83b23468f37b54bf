//! The first centroids of k-means, drawn from movies, as `datagen centroids` writes them.
//!
//! Owns which movies are drawn and the lines `k similarity movie count reviews`. Does not own the movies.

use crate::inputs;
use crate::random::SplitMix;
use crate::watch::Watch;
use std::cmp::Reverse;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// The most centroids of a file.
pub const CLUSTERS_MAX: u32 = 16;

/// From this byte of its movie's line on, the reviews of a centroid end at the first comma.
const LINE_BYTES: usize = 1000;

/// What `datagen centroids` is asked for.
#[derive(Clone, Debug)]
pub struct CentroidsSettings {
    /// Files of movies, and directories of them: their files in name order, without those starting with `_`
    /// or `.`.
    pub movies: Vec<PathBuf>,
    /// How many, from 1 to [`CLUSTERS_MAX`].
    pub clusters: u32,
    /// Chooses which movies become centroids.
    pub seed: u64,
    /// The file to write.
    pub file: PathBuf,
    /// Whether a file that is there is replaced.
    pub overwrite: bool,
    /// Can end the call early.
    pub watch: Watch,
}

/// Why no centroids were written.
#[derive(Debug, thiserror::Error)]
pub enum CentroidsError {
    #[error("{clusters} centroids asked for; choose 1 to {CLUSTERS_MAX}")]
    Clusters { clusters: u32 },
    #[error("{} exists; pass --overwrite or choose another file", path.display())]
    Exists { path: PathBuf },
    #[error("cannot {action} {}: {source}", path.display())]
    Refused { action: &'static str, path: PathBuf, source: io::Error },
    /// A line is no movie.
    #[error("line {line} of {} is no MOVIE:RATER_RATING,... with a number as movie", path.display())]
    NotMovie { path: PathBuf, line: u64 },
    #[error(
        "found {found} movies with reviews and {clusters} centroids are asked for; pass --clusters {found} or give more movies"
    )]
    TooFew { found: u64, clusters: u32 },
    #[error("interrupted; nothing was written")]
    Interrupted,
}

/// Draws movies that have reviews, all with the same chance, and writes them in the order of their numbers,
/// the largest first. The similarity is 0: no movie was compared yet.
///
/// # Errors
///
/// When the movies cannot be read or are too few, and when the file cannot be written.
pub fn generate(settings: &CentroidsSettings) -> Result<(), CentroidsError> {
    if !(1..=CLUSTERS_MAX).contains(&settings.clusters) {
        return Err(CentroidsError::Clusters { clusters: settings.clusters });
    }
    if settings.file.exists() && !settings.overwrite {
        return Err(CentroidsError::Exists { path: settings.file.clone() });
    }
    let mut drawn = draw(settings)?;
    drawn.sort_by_key(|(movie, _)| Reverse(*movie));
    let mut text = String::new();
    for (k, (movie, line)) in drawn.iter().enumerate() {
        let reviews = line.split_once(':').map_or("", |(_, reviews)| reviews);
        let before = line.len() - reviews.len();
        let comma = line.bytes().skip(LINE_BYTES).position(|byte| byte == b',');
        let kept = comma.map_or(reviews, |at| &reviews[..LINE_BYTES + at - before]);
        text.push_str(&format!("{k} 0 {movie} {} {kept}\n", reviews.split(',').count()));
    }
    write(&settings.file, &text)
}

/// Movies by Vitter's algorithm R: of `n` movies each is drawn with the same chance.
fn draw(settings: &CentroidsSettings) -> Result<Vec<(u64, String)>, CentroidsError> {
    let mut random = SplitMix::of(settings.seed, 0);
    let (mut drawn, mut found) = (Vec::new(), 0);
    for path in files(&settings.movies)? {
        let refused = |source| CentroidsError::Refused { action: "read", path: path.clone(), source };
        let mut lines = BufReader::with_capacity(1 << 20, File::open(&path).map_err(refused)?).lines();
        for number in 1.. {
            let Some(line) = lines.next().transpose().map_err(refused)? else { break };
            if settings.watch.stopped() {
                return Err(CentroidsError::Interrupted);
            }
            let not_movie = || CentroidsError::NotMovie { path: path.clone(), line: number };
            let (movie, reviews) = line.split_once(':').ok_or_else(not_movie)?;
            let movie = movie.parse().map_err(|_| not_movie())?;
            if reviews.is_empty() {
                continue;
            }
            found += 1;
            if found <= u64::from(settings.clusters) {
                drawn.push((movie, line));
            } else if let Some(place) = drawn.get_mut(random.below(found) as usize) {
                *place = (movie, line);
            }
        }
    }
    if found < u64::from(settings.clusters) {
        return Err(CentroidsError::TooFew { found, clusters: settings.clusters });
    }
    Ok(drawn)
}

fn files(movies: &[PathBuf]) -> Result<Vec<PathBuf>, CentroidsError> {
    let mut files = Vec::new();
    for input in movies {
        let refused = |source| CentroidsError::Refused { action: "read", path: input.clone(), source };
        files.extend(inputs::list(input).map_err(refused)?);
    }
    Ok(files)
}

/// Under another name first, so that a file is whole or not there.
fn write(file: &Path, text: &str) -> Result<(), CentroidsError> {
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    let partial = PathBuf::from(name);
    let written = File::create(&partial).and_then(|mut open| open.write_all(text.as_bytes()));
    written.and_then(|()| fs::rename(&partial, file)).map_err(|source| {
        // Best effort on the way to reporting the failure itself; it may not even exist.
        let _ = fs::remove_file(&partial);
        CentroidsError::Refused { action: "write", path: file.to_owned(), source }
    })
}
