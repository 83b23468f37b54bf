//! What travels: messages between coordinator, worker and task process, and their form as bytes.
//!
//! Owns the vocabulary, named by direction, and the wire format. Every message is self-contained, so that any two
//! parts may be in different processes. Does not own the channels and sockets that carry them.

mod client_messages;
mod description;
mod shuffle_messages;
mod task_messages;
#[cfg(test)]
mod tests;
mod wire;
mod worker_messages;

pub(crate) use crate::client::LogStream;
pub(crate) use client_messages::{CHUNK_BYTES, FromCoordinator, Submission, ToCoordinator};
pub(crate) use description::{ReduceWork, TaskDescription, Work};
pub(crate) use shuffle_messages::{
    CREDIT_BYTES_MAX, FETCH_ITEMS_MAX, FetchItem, FromDataServer, PIECE_BYTES_MAX, Payload, ToDataServer,
};
pub(crate) use task_messages::{FromTask, PROTOCOL_VERSION, ToTask};
pub(crate) use wire::{FrameBuffer, WireError, encode, encode_onto, read_message, write_message};
pub(crate) use worker_messages::{
    AttemptProgress, Blob, FromWorker, Hello, JobDescription, LaunchWork, Peer, Preempted, PreemptionAccount,
    ReduceInputs, SideFile, ToWorker, WorkerNews, WorkerOrder, WorkerReport,
};
