//! What several programs of the job suite share: lines with the name of their document, and movies
//! with their reviews.
//!
//! Owns the formats of movies and centroids, and which centroid a movie is nearest to. Does not own the jobs,
//! which are the programs in `src/bin`.

mod centroids;
mod documents;
mod movies;

pub use centroids::{CENTROIDS_MAX, Centroids, centroid};
pub use documents::{DocumentLines, by_document};
pub use movies::{Movie, Review};
