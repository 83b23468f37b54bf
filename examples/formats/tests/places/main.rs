//! Jobs over objects in a store, as a person runs them: the output is that of the same bytes in files, or an
//! error names the object.
//!
//! Owns programs, clusters and faults at the outside, against servers from elsewhere that speak S3 (`moto`)
//! and as Azure does (`azurite`), and one of this project that speaks as Google does (`google`): each script
//! with each of them. Does not own requests (`runtime/storage`). Skipped where there is no such server,
//! unless `NAPREDUCE_REQUIRE` names `moto`, `azurite` or `google`.

mod cluster;
mod errors;
mod faults;
mod jobs;
#[allow(dead_code, reason = "tests of outputs use the rest")]
mod proxy;
#[allow(dead_code, reason = "tests of outputs use the rest")]
mod server;
#[cfg(feature = "formats")]
mod tables;
