//! Formats that several programs of the job suite share: lines with the name of their document, movies with
//! their reviews, and centroids. The programs are in `src/bin/suite`.

mod centroids;
mod documents;
mod movies;

pub use centroids::{CENTROIDS_MAX, Centroids, centroid};
pub use documents::{DocumentLines, by_document};
pub use movies::{Movie, Review};
