//! Initial k-means centroids drawn from movies, as `datagen centroids` writes them: lines `k similarity movie
//! count reviews`.

use crate::inputs;
use crate::random::SplitMix;
use crate::watch::Watch;
use std::cmp::Reverse;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// Largest number of centroids in a file.
pub const CLUSTERS_MAX: u32 = 16;

/// The reviews of a centroid end at the first comma at or after this byte of the movie's line.
const LINE_BYTES: usize = 1000;

/// Settings of `datagen centroids`.
#[derive(Clone, Debug)]
pub struct CentroidsSettings {
    /// Files of movies, or directories. A directory's files are read in name order; names that start with `_`
    /// or `.` are skipped.
    pub movies: Vec<PathBuf>,
    /// Number of centroids, from 1 to [`CLUSTERS_MAX`].
    pub clusters: u32,
    /// Random seed.
    pub seed: u64,
    /// Output file.
    pub file: PathBuf,
    /// Whether an existing file is replaced.
    pub overwrite: bool,
    /// Stops the call early.
    pub watch: Watch,
}

/// Error of [`generate`].
#[derive(Debug, thiserror::Error)]
pub enum CentroidsError {
    #[error("invalid number of centroids {clusters}; choose 1 to {CLUSTERS_MAX}")]
    Clusters { clusters: u32 },
    #[error("{} exists; pass --overwrite or choose another file", path.display())]
    Exists { path: PathBuf },
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A line that is not a movie.
    #[error("{}, line {line}: not a movie; expected MOVIE:RATER_RATING,... with a number as the movie", path.display())]
    NotMovie { path: PathBuf, line: u64 },
    #[error(
        "too few movies for {clusters} centroids: {found} have reviews; pass --clusters {found} or give more movies"
    )]
    TooFew { found: u64, clusters: u32 },
    #[error("interrupted; nothing was written")]
    Interrupted,
}

/// Draws movies that have reviews, all with the same probability, and writes them by descending number. The
/// similarity column is 0, because no movie has been compared yet.
///
/// # Errors
///
/// Fails when the movies cannot be read or are too few, and when the file cannot be written.
pub fn generate(settings: &CentroidsSettings) -> Result<(), CentroidsError> {
    if !(1..=CLUSTERS_MAX).contains(&settings.clusters) {
        return Err(CentroidsError::Clusters {
            clusters: settings.clusters,
        });
    }
    if settings.file.exists() && !settings.overwrite {
        return Err(CentroidsError::Exists {
            path: settings.file.clone(),
        });
    }
    let mut drawn = draw(settings)?;
    drawn.sort_by_key(|(movie, _)| Reverse(*movie));
    let mut text = String::new();
    for (k, (movie, line)) in drawn.iter().enumerate() {
        let reviews = line.split_once(':').map_or("", |(_, reviews)| reviews);
        let before = line.len() - reviews.len();
        let comma = line.bytes().skip(LINE_BYTES).position(|byte| byte == b',');
        let kept = comma.map_or(reviews, |at| &reviews[..LINE_BYTES + at - before]);
        text.push_str(&format!(
            "{k} 0 {movie} {} {kept}\n",
            reviews.split(',').count()
        ));
    }
    write(&settings.file, &text)
}

/// Draws movies with Vitter's algorithm R: each of `n` movies is drawn with the same probability.
fn draw(settings: &CentroidsSettings) -> Result<Vec<(u64, String)>, CentroidsError> {
    let mut random = SplitMix::new(settings.seed, 0);
    let mut drawn = Vec::new();
    let mut found = 0;
    for path in files(&settings.movies)? {
        let io_error = |source| CentroidsError::Io {
            action: "read",
            path: path.clone(),
            source,
        };
        let mut lines =
            BufReader::with_capacity(1 << 20, File::open(&path).map_err(io_error)?).lines();
        for number in 1.. {
            let Some(line) = lines.next().transpose().map_err(io_error)? else {
                break;
            };
            if settings.watch.stopped() {
                return Err(CentroidsError::Interrupted);
            }
            let not_movie = || CentroidsError::NotMovie {
                path: path.clone(),
                line: number,
            };
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
        return Err(CentroidsError::TooFew {
            found,
            clusters: settings.clusters,
        });
    }
    Ok(drawn)
}

fn files(movies: &[PathBuf]) -> Result<Vec<PathBuf>, CentroidsError> {
    let mut files = Vec::new();
    for input in movies {
        let io_error = |source| CentroidsError::Io {
            action: "read",
            path: input.clone(),
            source,
        };
        files.extend(inputs::list(input).map_err(io_error)?);
    }
    Ok(files)
}

/// Writes the file under a temporary name and renames it, so that readers never see a partial file.
fn write(file: &Path, text: &str) -> Result<(), CentroidsError> {
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    let partial = PathBuf::from(name);
    let written = File::create(&partial).and_then(|mut open| open.write_all(text.as_bytes()));
    written
        .and_then(|()| fs::rename(&partial, file))
        .map_err(|source| {
            // Best effort: the write error is reported, and the file may not exist.
            let _ = fs::remove_file(&partial);
            CentroidsError::Io {
                action: "write",
                path: file.to_owned(),
                source,
            }
        })
}
