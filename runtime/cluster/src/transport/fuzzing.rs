//! The handshake and the records without sockets, for fuzzing.

use napreduce_local::world::World;
use napreduce_protocol::{SECRET_BYTES, Secret};

use super::handshake::{Initiator, Responder};
use super::preamble::{self, ANSWER_BYTES, MAGIC, Role};

/// Feeds the bytes to a server and a client as handshake messages, and to a connection as records.
pub fn shake_hands(bytes: &[u8]) {
    let secret = Secret::from_bytes([7; SECRET_BYTES]);
    fuzz_server(bytes, &secret);
    fuzz_client(bytes, &secret);
    // Skipped for greetings: they are rarely records, and a handshake per input takes most of the time.
    if !bytes.starts_with(&MAGIC) {
        fuzz_records(bytes, &secret);
    }
}

fn fuzz_server(bytes: &[u8], secret: &Secret) {
    let Some((greeting, rest)) = bytes.split_first_chunk() else {
        return;
    };
    let Ok(role) = preamble::check_greeting(greeting) else {
        return;
    };
    let Some((proof, rest)) = rest.split_first_chunk() else {
        return;
    };
    let Ok((responder, _)) =
        Responder::reply(greeting, proof, &role.key(secret), &World::real().random)
    else {
        return;
    };
    let Some((confirmation, _)) = rest.split_first_chunk() else {
        return;
    };
    assert!(
        responder.confirm(confirmation).is_err(),
        "confirmed without knowing the server's key"
    );
}

fn fuzz_client(bytes: &[u8], secret: &Secret) {
    let Some((answer, rest)) = bytes.split_first_chunk() else {
        return;
    };
    if preamble::check_answer(answer).is_err() {
        return;
    }
    let Some((proof, _)) = rest.split_first_chunk() else {
        return;
    };
    let (initiator, _) = Initiator::open(Role::Data, secret, &World::real().random)
        .expect("a handshake can be begun");
    assert!(
        initiator.finish(proof).is_err(),
        "accepted a server that does not know the client's key"
    );
}

/// Fails if a record is accepted: none can be authentic.
fn fuzz_records(bytes: &[u8], secret: &Secret) {
    let (initiator, opening) = Initiator::open(Role::Data, secret, &World::real().random)
        .expect("a handshake can be begun");
    let (greeting, proof) = opening
        .split_first_chunk()
        .expect("an opening begins with a greeting");
    let proof = proof.first_chunk().expect("and continues with a proof");
    let (_, reply) = Responder::reply(greeting, proof, secret, &World::real().random)
        .expect("a genuine proof is answered");
    let proof = reply[ANSWER_BYTES..]
        .first_chunk()
        .expect("a reply ends with a proof");
    let (mut keys, _) = initiator
        .finish(proof)
        .expect("a genuine reply is accepted");
    let mut rest = bytes;
    while !rest.is_empty() {
        let room = keys.opener.room();
        let count = room.len().min(rest.len());
        room[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        if keys.opener.filled(count).is_err() {
            return;
        }
        let message = keys.opener.next::<Vec<u8>>();
        assert!(
            matches!(message, Ok(None)),
            "a message came out of records that are not authentic"
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn random_bytes_cause_no_panic(bytes in vec(any::<u8>(), 0..400)) {
            shake_hands(&bytes);
        }

        #[test]
        fn small_numbers_cause_no_panic(bytes in vec(prop_oneof![0..12_u8, 250..=255_u8], 0..60)) {
            shake_hands(&bytes);
        }

        #[test]
        fn damaged_greetings_cause_no_panic(
            rest in vec(any::<u8>(), 0..120),
            at in 0..7_usize,
            byte in any::<u8>(),
        ) {
            let mut bytes = b"NAPR\x01\x00\x02".to_vec();
            shake_hands(&[&bytes, rest.as_slice()].concat());
            bytes[at] = byte;
            bytes.extend_from_slice(&rest);
            shake_hands(&bytes);
        }
    }
}
