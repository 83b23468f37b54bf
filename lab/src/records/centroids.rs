//! The centroids of a step of k-means, a side file of lines `k similarity movie count reviews`, and the similarity of a
//! movie and a centroid.

use std::collections::HashMap;
use std::fs;

use napreduce::program::SideFile;

use super::movies::Movie;

pub const CENTROIDS_MAX: usize = 16;

/// The reviews of a centroid end at the first comma at or after this byte of its movie's line.
const LINE_BYTES: usize = 1000;

/// The ratings of all centroids, by rater.
#[derive(Debug, Clone)]
pub struct Centroids {
    count: usize,
    /// The rating in each centroid; 0 in centroids without this rater.
    ratings: HashMap<u32, [u8; CENTROIDS_MAX]>,
}

impl Centroids {
    /// The side file `centroids`, given with `--files PATH#centroids`.
    pub fn of_side_file() -> SideFile<Centroids> {
        SideFile::new("centroids", |path| {
            Centroids::parse(&fs::read_to_string(path).map_err(|error| error.to_string())?)
        })
    }

    /// The centroids of these lines, which are numbered from 0.
    ///
    /// # Errors
    ///
    /// When there are none or more than [`CENTROIDS_MAX`], or a line is not a centroid.
    pub fn parse(text: &str) -> Result<Centroids, String> {
        let count = text.lines().count();
        if !(1..=CENTROIDS_MAX).contains(&count) {
            return Err(format!(
                "expected 1 to {CENTROIDS_MAX} centroids, but found {count}"
            ));
        }
        let mut ratings: HashMap<u32, [u8; CENTROIDS_MAX]> = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let wrong = || {
                format!(
                    "line {} of the centroids: expected {number} SIMILARITY MOVIE COUNT REVIEWS",
                    number + 1
                )
            };
            let fields: Vec<&str> = line.split(' ').collect();
            let [k, _similarity, movie, _count, reviews] = fields[..] else {
                return Err(wrong());
            };
            if k.parse() != Ok(number) {
                return Err(wrong());
            }
            for review in Movie::parse(&format!("{movie}:{reviews}"))?.reviews() {
                let review = review.map_err(|error| format!("{}: {error}", wrong()))?;
                ratings.entry(review.rater).or_default()[number] = review.rating;
            }
        }
        Ok(Centroids { count, ratings })
    }

    /// The most similar centroid and the similarity: the sum of the products of the ratings over the root of the
    /// product of the sums of their squares, over the raters in common. The first of equal ones; 0 and 0 for a movie
    /// without raters in common.
    ///
    /// # Errors
    ///
    /// When a review cannot be read.
    pub fn nearest(&self, movie: &Movie<'_>) -> Result<(u32, f32), String> {
        let mut sums = [(0f32, 0f32, 0f32); CENTROIDS_MAX];
        for review in movie.reviews() {
            let review = review?;
            let Some(ratings) = self.ratings.get(&review.rater) else {
                continue;
            };
            for ((product, squares, of_centroid), rating) in sums.iter_mut().zip(ratings) {
                if *rating > 0 {
                    let mine = f32::from(review.rating);
                    let other = f32::from(*rating);
                    *product += mine * other;
                    *squares += mine * mine;
                    *of_centroid += other * other;
                }
            }
        }
        let mut nearest = (0, 0f32);
        for (number, (product, squares, of_centroid)) in (0..).zip(&sums[..self.count]) {
            if *product > 0.0 {
                let similarity = product / (squares * of_centroid).sqrt();
                if similarity > nearest.1 {
                    nearest = (number, similarity);
                }
            }
        }
        Ok(nearest)
    }
}

/// The line of the centroid for the movie of `line`: its reviews end at the first comma at or after byte 1000 of
/// that line; the count is that of all reviews.
///
/// # Errors
///
/// When the line is not a movie.
pub fn centroid(number: u32, similarity: f32, line: &str) -> Result<String, String> {
    let movie = Movie::parse(line)?;
    let comma = line.bytes().skip(LINE_BYTES).position(|byte| byte == b',');
    let kept = &line[..comma.map_or(line.len(), |at| LINE_BYTES + at)];
    let reviews = kept.get(movie.id.len() + 1..).unwrap_or_default();
    Ok(format!(
        "{number} {similarity} {} {} {reviews}",
        movie.id,
        movie.reviews().count()
    ))
}
