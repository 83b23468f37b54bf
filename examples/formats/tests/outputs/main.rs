//! Jobs that write to a store, as a person runs them: the output is that of a directory, once, or there is none.
//!
//! Owns programs, clusters, kills and faults at the outside, against a server of S3 from elsewhere (`moto`). Does not own the
//! steps of a commit (`runtime/live`) nor requests (`runtime/storage`). Skipped where there is no such server, unless
//! `NAPREDUCE_REQUIRE` names `moto`.

mod cluster;
mod coordinator;
mod embedded;
mod faults;
#[allow(dead_code, reason = "tests of inputs use the rest")]
#[path = "../places/moto.rs"]
mod moto;
#[allow(dead_code, reason = "tests of inputs use the rest")]
#[path = "../places/proxy.rs"]
mod proxy;
mod scene;
