//! Fuzzes the frames that a program in another language writes: every input is parsed or rejected, and no frame
//! exceeds the limit. The framework's tests cover invalid payloads.
#![no_main]

use libfuzzer_sys::fuzz_target;
use napreduce::streaming::frames::FrameDecoder;

const LIMIT: usize = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let size = bytes.first().map_or(1, |first| usize::from(*first).max(1));
    let mut decoder = FrameDecoder::new(LIMIT);
    let mut again = Vec::new();
    'stream: for piece in bytes.chunks(size) {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    assert!(frame.payload.len() <= LIMIT);
                    again.extend(frame.encoded().expect("it had a length"));
                }
                Ok(None) => break,
                Err(_) => break 'stream,
            }
        }
    }
    assert!(bytes.starts_with(&again), "frames are as they came");
});
