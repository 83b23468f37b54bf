//! What travels: messages between coordinator, worker and task process, and their form as bytes.
//!
//! Owns the vocabulary, named by direction, and the wire format. Every message is self-contained, so that any two
//! parts may be in different processes. Does not own the channels and sockets that carry them.

mod description;
mod task_messages;
#[cfg(test)]
mod tests;
mod wire;
mod worker_messages;

pub(crate) use description::{TaskDescription, Work};
pub(crate) use task_messages::{FromTask, PROTOCOL_VERSION, ToTask};
pub(crate) use wire::{FrameBuffer, WireError, encode, read_message, write_message};
pub(crate) use worker_messages::{AttemptProgress, FromWorker, JobDescription, LaunchWork, ToWorker};
