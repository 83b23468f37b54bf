//! The client of a cluster, for job programs and the operator's binary: requests to the coordinator, with
//! retries and plain data as answers.

mod async_client;
mod chain;
mod cluster_client;
mod error;
mod place;
mod run;
mod sending;
mod session;
mod started;
mod submission;
#[cfg(test)]
mod tests;

pub use async_client::{AsyncClient, LogRead};
pub use cluster_client::ClusterClient;
pub use error::ClientError;
pub use place::ClusterPlace;
pub use run::{FollowOptions, OnInterrupt};
pub use session::Patience;
pub use started::{attach_job, start_job};
pub use submission::SubmitOptions;
