//! The bytes of the preamble and the sizes of the handshake.

use super::super::handshake::{Initiator, OPENING_BYTES, REPLY_BYTES, Responder};
use super::super::preamble::ANSWER_BYTES;
use super::super::records::CONFIRMATION_BYTES;
use super::*;

const RAISE: &str = "the handshake has changed: raise NETWORK_VERSION";

#[test]
fn preamble_bytes_are_fixed() {
    assert_eq!(NETWORK_VERSION, 19, "update the bytes here and below");
    assert_eq!(
        preamble::greeting(Role::Worker),
        *b"NAPR\x13\x00\x01\0\0\0\0",
        "{RAISE}"
    );
    assert_eq!(
        preamble::greeting(Role::Client),
        *b"NAPR\x13\x00\x02\0\0\0\0",
        "{RAISE}"
    );
    assert_eq!(
        preamble::greeting(Role::Data),
        *b"NAPR\x13\x00\x03\0\0\0\0",
        "{RAISE}"
    );
    let task = Role::Task(JobId(0x0403_0201));
    assert_eq!(
        preamble::greeting(task),
        *b"NAPR\x13\x00\x04\x01\x02\x03\x04",
        "{RAISE}"
    );
    assert_eq!(preamble::answer(), *b"NAPR\x13\x00", "{RAISE}");
    assert_eq!(
        (OPENING_BYTES, REPLY_BYTES, CONFIRMATION_BYTES),
        (59, 54, 18),
        "{RAISE}"
    );
}

/// Repeats a handshake and a message with the Noise library alone, as documented.
#[test]
fn handshake_and_records_follow_noise_specification() {
    let secret = Secret::from_bytes([3; 32]);
    let (client, opening) = Initiator::open(Role::Data, &secret, &random()).unwrap();
    let parameters = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s".parse().unwrap();
    let builder = snow::Builder::new(parameters)
        .prologue(b"NAPR\x13\x00\x03\0\0\0\0")
        .unwrap();
    let mut noise = builder.psk(0, &[3; 32]).unwrap().build_responder().unwrap();
    noise.read_message(&opening[11..], &mut []).expect(RAISE);
    let mut reply = [0; 48];
    noise.write_message(&[], &mut reply).unwrap();
    let (mut keys, confirmation) = client.finish(&reply).expect(RAISE);
    let mut noise = noise.into_transport_mode().unwrap();
    assert_eq!(confirmation[..2], [16, 0], "{RAISE}");
    noise
        .read_message(&confirmation[2..], &mut [])
        .expect(RAISE);
    keys.sealer.stage(["hi", "ho"]).unwrap();
    let mut records = Vec::new();
    keys.sealer.seal(&mut records).unwrap();
    assert_eq!(records[..2], [16 + 14, 0], "{RAISE}");
    let mut plain = [0; 14];
    noise.read_message(&records[2..], &mut plain).expect(RAISE);
    assert_eq!(plain, *b"\x03\0\0\0\x02hi\x03\0\0\0\x02ho", "{RAISE}");
    // The other direction.
    let (server, reply) = Responder::reply(
        b"NAPR\x13\x00\x03\0\0\0\0",
        opening[11..].try_into().unwrap(),
        &secret,
        &random(),
    )
    .unwrap();
    assert_eq!(reply[..ANSWER_BYTES], *b"NAPR\x13\x00", "{RAISE}");
    assert!(
        server.confirm(&confirmation).is_err(),
        "a confirmation for another server was accepted"
    );
}
