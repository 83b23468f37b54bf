//! Jobs that write to an object store: the output equals that of a local directory and appears exactly once, or
//! the job fails and leaves no output.
//!
//! Each test runs against S3 (`moto`), Azure (`azurite`) and Google Cloud Storage (`google.py`). It is
//! skipped without the server, unless `NAPREDUCE_REQUIRE` names `moto`, `azurite` or `google`.

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
