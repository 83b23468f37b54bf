//! Jobs that write to a store, as a person runs them: the output is that of a directory, once, or
//! there is none.
//!
//! Owns programs, clusters, kills and faults at the outside, against servers from elsewhere that speak S3
//! (`moto`) and as Azure does (`azurite`), and one of this project that speaks as Google does (`google`):
//! each script with each of them. Does not own the steps of a commit (`runtime/local`) nor requests
//! (`runtime/storage`). Skipped where there is no such server, unless `NAPREDUCE_REQUIRE` names `moto`,
//! `azurite` or `google`.

mod chaos;
mod cluster;
mod coordinator;
mod embedded;
mod events;
mod faults;
mod guests;
#[allow(dead_code, reason = "tests of inputs use the rest")]
#[path = "../places/proxy.rs"]
mod proxy;
mod scene;
#[allow(dead_code, reason = "tests of inputs use the rest")]
#[path = "../places/server/mod.rs"]
mod server;
