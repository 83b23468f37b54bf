//! Messages between coordinator, worker and task process, and their encoding. Every message is
//! self-contained, so any two parts may be in different processes.

mod data;
mod payloads;
pub mod requests;
mod task;
#[cfg(test)]
mod tests;
mod worker;

pub use data::{
    CREDIT_BYTES_MAX, FETCH_ITEMS_MAX, FetchItem, FromDataServer, PIECE_BYTES_MAX, Payload,
    ToDataServer,
};
pub use requests::{
    Answer, CHUNK_BYTES, FromCoordinator, Request, RerunOf, Submission, ToCoordinator,
};
pub use task::{FromTask, Outfit, OutfitVariable, PROTOCOL_VERSION, ToTask};
pub use worker::{
    AttemptProgress, FromWorker, Hello, JobDescription, LaunchWork, OutputEntry, Peer, Preempted,
    PreemptionAccount, ToWorker, WorkerNews, WorkerReport,
};

/// Version of the preamble, the handshake, the records and all messages inside. Raise it when any of
/// them changes.
pub const NETWORK_VERSION: u16 = 19;
