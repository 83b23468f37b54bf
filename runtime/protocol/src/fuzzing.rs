//! Entry points for fuzzing the decoders of sockets and journals. For any bytes there must be no panic, no
//! message that changes when it is re-encoded, and no allocation in proportion to a claimed length.

#[cfg(test)]
mod tests;

use crate::messages::{
    FromCoordinator, FromDataServer, FromTask, FromWorker, ToCoordinator, ToDataServer, ToTask,
    ToWorker,
};
use crate::wire::{FrameBuffer, Incoming, Outgoing, WireError, encode};

/// An entry point and the name of its fuzz target.
pub type FuzzTarget = (&'static str, fn(&[u8]));

/// All entry points.
pub const TARGETS: [FuzzTarget; 8] = [
    ("from_worker", decode_any::<FromWorker>),
    ("to_worker", decode_any::<ToWorker>),
    ("to_coordinator", decode_any::<ToCoordinator>),
    ("from_coordinator", decode_any::<FromCoordinator>),
    ("to_data_server", decode_any::<ToDataServer>),
    ("from_data_server", decode_any::<FromDataServer>),
    ("from_task", decode_any::<FromTask>),
    ("to_task", decode_any::<ToTask>),
];

/// Runs the named entry point.
///
/// # Panics
/// If the name is unknown, or the bytes have exposed an error.
pub fn run(target: &str, bytes: &[u8]) {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    let (_, enter) = found.unwrap_or_else(|| panic!("there is no fuzz target {target}"));
    enter(bytes);
}

/// Decodes the bytes as a stream in pieces, and as one frame.
fn decode_any<M: Incoming + Outgoing>(bytes: &[u8]) {
    let mut buffer = FrameBuffer::default();
    let size = bytes.first().map_or(1, |first| usize::from(*first).max(1));
    'stream: for piece in bytes.chunks(size) {
        buffer.push(piece);
        loop {
            match buffer.next_message::<M>() {
                Ok(Some(message)) => check_stable(&message),
                Ok(None) => break,
                Err(_) => break 'stream,
            }
        }
    }
    let mut frame = FrameBuffer::default();
    frame.push(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    frame.push(bytes);
    match frame.next_message::<M>() {
        Ok(Some(message)) => check_stable(&message),
        Ok(None) => panic!("a whole frame was not noticed"),
        Err(error) => assert!(
            !matches!(error, WireError::CutShort | WireError::Io(_)),
            "{error}"
        ),
    }
}

/// Checks that a decoded message survives re-encoding.
fn check_stable<M: Incoming + Outgoing>(message: &M) {
    let bytes = encode(message).expect("a decoded message can be encoded");
    let mut buffer = FrameBuffer::default();
    buffer.push(&bytes);
    let again: M = buffer
        .next_message()
        .expect("an encoded message can be decoded")
        .expect("a frame is whole");
    assert_eq!(
        encode(&again).expect("it could be encoded before"),
        bytes,
        "a message changed on the way"
    );
}
