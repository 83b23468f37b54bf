//! Files of HDFS as the library of stores has objects, to be read.
//!
//! Owns connections to NameNodes, what their answers mean, and that what is read of a file is of one version
//! of it. Does not own blocks and their transfer (`hdfs-native`), trying again (`requests`), reading ahead
//! (`stream`) nor writing (`hdfs_files`).

mod client;
mod objects;

pub(crate) use client::{CHANGED, Hdfs, MISSING, ask, connected, failure, version_of};
pub(crate) use objects::HdfsObjects;
