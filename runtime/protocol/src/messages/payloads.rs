//! The bytes of the large messages. Each method is written out, so that this crate compiles it once ([`Outgoing`]).

use super::{
    FromCoordinator, FromDataServer, FromTask, FromWorker, Payload, ToCoordinator, ToDataServer,
    ToTask, ToWorker,
};
use crate::wire::{Incoming, Outgoing, WireError, deserialize, serialize};

impl Outgoing for ToTask {
    fn append_payload(&self, frame: &mut Vec<u8>) -> Result<(), WireError> {
        serialize(self, frame)
    }
}

impl Incoming for ToTask {
    fn from_payload(payload: &[u8]) -> Result<ToTask, WireError> {
        deserialize(payload)
    }
}

impl Outgoing for FromTask {
    fn append_payload(&self, frame: &mut Vec<u8>) -> Result<(), WireError> {
        serialize(self, frame)
    }
}

impl Incoming for FromTask {
    fn from_payload(payload: &[u8]) -> Result<FromTask, WireError> {
        deserialize(payload)
    }
}

impl Outgoing for ToWorker {
    fn append_payload(&self, frame: &mut Vec<u8>) -> Result<(), WireError> {
        serialize(self, frame)
    }
}

impl Incoming for ToWorker {
    fn from_payload(payload: &[u8]) -> Result<ToWorker, WireError> {
        deserialize(payload)
    }
}

impl Outgoing for FromWorker {
    fn append_payload(&self, frame: &mut Vec<u8>) -> Result<(), WireError> {
        serialize(self, frame)
    }
}

impl Incoming for FromWorker {
    fn from_payload(payload: &[u8]) -> Result<FromWorker, WireError> {
        deserialize(payload)
    }
}

impl Outgoing for ToCoordinator {
    fn append_payload(&self, frame: &mut Vec<u8>) -> Result<(), WireError> {
        serialize(self, frame)
    }
}

impl Incoming for ToCoordinator {
    fn from_payload(payload: &[u8]) -> Result<ToCoordinator, WireError> {
        deserialize(payload)
    }
}

impl Outgoing for FromCoordinator {
    fn append_payload(&self, frame: &mut Vec<u8>) -> Result<(), WireError> {
        serialize(self, frame)
    }
}

impl Incoming for FromCoordinator {
    fn from_payload(payload: &[u8]) -> Result<FromCoordinator, WireError> {
        deserialize(payload)
    }
}

impl Outgoing for ToDataServer {
    fn append_payload(&self, frame: &mut Vec<u8>) -> Result<(), WireError> {
        serialize(self, frame)
    }
}

impl Incoming for ToDataServer {
    fn from_payload(payload: &[u8]) -> Result<ToDataServer, WireError> {
        deserialize(payload)
    }
}

impl Outgoing for FromDataServer {
    fn append_payload(&self, frame: &mut Vec<u8>) -> Result<(), WireError> {
        serialize(self, frame)
    }
}

impl Incoming for FromDataServer {
    fn from_payload(payload: &[u8]) -> Result<FromDataServer, WireError> {
        deserialize(payload)
    }
}

// Measurements and tests of connections send these.
impl Outgoing for str {}
impl Outgoing for Payload {}
impl Incoming for Payload {}
impl Outgoing for Vec<u8> {}
impl Incoming for Vec<u8> {}
impl Outgoing for String {}
impl Incoming for String {}
impl Outgoing for u8 {}
impl Incoming for u8 {}
impl Outgoing for u32 {}
impl Incoming for u32 {}
impl Outgoing for u64 {}
impl Incoming for u64 {}
