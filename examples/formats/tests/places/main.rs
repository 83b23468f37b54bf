//! Jobs that read objects in a store: the output equals that for files, or an error names the object.
//!
//! Each test runs against S3 (`moto`), Azure (`azurite`) and Google Cloud Storage (`google.py`). It is
//! skipped without the server, unless `NAPREDUCE_REQUIRE` names `moto`, `azurite` or `google`.

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
