//! The client of a cluster: what submitters and the operator's binary ask of its coordinator.
//!
//! Owns the conversation, patience with a coordinator that is away, and the answers as plain data. Does not
//! own how they are printed.

mod chain;
mod cluster_client;
mod error;
mod place;
mod run;
mod sending;
mod session;
mod submission;
#[cfg(test)]
mod tests;

pub use cluster_client::{ClusterClient, LogRead};
pub use error::ClientError;
pub use place::ClusterPlace;
pub use run::{FollowOptions, OnInterrupt};
pub use session::Patience;
pub use submission::SubmitOptions;
