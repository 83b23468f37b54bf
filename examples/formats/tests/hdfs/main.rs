//! Jobs that read and write HDFS, as a person runs them: the output is that of the same bytes in files, once,
//! or an error names the file.
//!
//! Owns programs, clusters, kills and faults at the outside, against a NameNode and a DataNode of Hadoop 2.7.
//! Does not own the steps of a commit (`runtime/local`) nor how files do what objects do (`runtime/storage`).
//! Skipped where there are no jars of Hadoop, unless `NAPREDUCE_REQUIRE` names `hdfs`.

mod changes;
mod chaos;
mod cluster;
mod coordinator;
#[path = "../outputs/events.rs"]
mod events;
mod guests;
mod inputs;
mod outputs;
mod proxy;
mod scene;
mod server;
mod swaps;
