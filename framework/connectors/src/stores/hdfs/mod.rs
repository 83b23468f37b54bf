//! Reading files of HDFS as objects of `object_store`.

mod client;
mod objects;

pub(crate) use client::{CHANGED, Hdfs, MISSING, ask, connected, failure, version_of};
pub(crate) use objects::HdfsObjects;
