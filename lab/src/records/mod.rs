//! Formats that several programs of the job suite (`src/bin/suite`) share.

mod centroids;
mod documents;
mod movies;

pub use centroids::{CENTROIDS_MAX, Centroids, centroid};
pub use documents::{DocumentLines, by_document};
pub use movies::{Movie, Review};
