//! Writing files of HDFS as if they were objects: files can be renamed but not compared and swapped.

mod layout;
mod small;
mod stores;
mod swapped;
mod upload;
mod waiting;

pub(crate) use stores::HdfsStores;
