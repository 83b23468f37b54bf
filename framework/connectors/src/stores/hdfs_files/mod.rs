//! Files of HDFS that are written, behind the names that objects have.
//!
//! Owns how files, which can be renamed but not compared and swapped, do what the runtime asks of objects.
//! Does not own reading (`hdfs`), trying again (`requests`) nor what a claim or a commit is (`runtime/live`).

mod layout;
mod small;
mod stores;
mod swapped;
mod upload;
mod waiting;

pub(crate) use stores::HdfsStores;
