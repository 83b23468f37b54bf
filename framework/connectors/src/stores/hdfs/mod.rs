//! Files of HDFS as the library of stores has objects, to be read.

mod client;
mod objects;

pub(crate) use client::{CHANGED, Hdfs, MISSING, ask, connected, failure, version_of};
pub(crate) use objects::HdfsObjects;
