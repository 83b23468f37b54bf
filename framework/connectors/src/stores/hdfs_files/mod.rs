//! Files of HDFS that are written, behind the names that objects have.
//!
//! Files can be renamed but not compared and swapped; here they do what the runtime asks of objects.

mod layout;
mod small;
mod stores;
mod swapped;
mod upload;
mod waiting;

pub(crate) use stores::HdfsStores;
