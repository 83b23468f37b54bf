//! Jobs that read and write HDFS: the output is that of a directory, exactly once, or an error names the
//! file.
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
