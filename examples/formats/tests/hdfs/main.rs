//! Jobs that read and write HDFS: the output equals that of a local directory and appears exactly once, or an
//! error names the file.
//!
//! The tests run a NameNode and a DataNode of Hadoop 2.7. They are skipped without Hadoop's jars, unless
//! `NAPREDUCE_REQUIRE` names `hdfs`.

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
