//! An entry point for fuzzing the input from an engine. The fuzzer is in `runtime/protocol/fuzz`.

use crate::forms::{GuestFrameReader, GuestFrameSequence, GuestPlan, GuestReport};

/// Reads the bytes as the frames of a reduce: no frame may exceed the input, and each must be written as it
/// was read. Payloads are also read as plan and report.
///
/// # Panics
/// Panics if a check fails.
pub fn read_guest_frames(bytes: &[u8]) {
    let (Ok(_) | Err(_)) = GuestPlan::from_json(bytes);
    let mut sequence = GuestFrameSequence::new(1, 6, 3);
    let mut reader = GuestFrameReader::new(bytes);
    let mut rest = bytes;
    while let Ok(Some((frame, payload))) = reader.next_frame() {
        let mut written = Vec::new();
        frame
            .write(payload, &mut written)
            .expect("memory can be written");
        rest = rest
            .strip_prefix(written.as_slice())
            .expect("a frame did not round-trip");
        if sequence.accept(&frame).is_ok() {
            assert!(
                frame.is_report() || frame.partition == 1,
                "{frame:?} is another reduce's"
            );
        }
        if let Ok(report) = GuestReport::from_json(payload) {
            let again = report.to_json().map(|text| GuestReport::from_json(&text));
            assert!(
                again.is_ok_and(|read| read.is_ok_and(|read| read == report)),
                "a report did not round-trip"
            );
        }
    }
    let (Ok(()) | Err(_)) = sequence.end();
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn random_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..400)) {
            read_guest_frames(&bytes);
        }

        #[test]
        fn small_numbers_do_not_panic(bytes in vec(prop_oneof![0..12_u8, 250..=255_u8], 0..60)) {
            read_guest_frames(&bytes);
        }

        #[test]
        fn damaged_guest_frames_do_not_panic(
            words in vec((0..3_u32, 0..7_u32, 0..4_u32, 0..20_u32, 0..20_usize), 0..12),
            damage in vec((any::<Index>(), any::<u8>()), 0..3),
        ) {
            let mut bytes = Vec::new();
            for (partition, map, number, length, given) in words {
                let partition = if partition == 0 { u32::MAX } else { partition };
                for word in [partition, map, number, length] {
                    bytes.extend_from_slice(&word.to_be_bytes());
                }
                bytes.resize(bytes.len() + given, b'{');
            }
            for (at, byte) in damage.into_iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            read_guest_frames(&bytes);
        }
    }
}
