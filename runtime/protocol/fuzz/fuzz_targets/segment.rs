//! Fuzzes segment files: every input is read to its end or rejected as damaged. Checksums reject most inputs;
//! the tests of `napreduce-data` mutate real files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use napreduce_data::Segment;

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("napreduce-fuzz-segment-{}", std::process::id()));
    std::fs::write(&path, bytes).expect("the temporary directory can be written");
    let opened = Segment::open(&path);
    std::fs::remove_file(&path).expect("it was just written");
    let Ok(segment) = opened else { return };
    for partition in 0..segment.partitions() {
        let Ok(mut cursor) = segment.cursor(partition) else {
            continue;
        };
        while let Ok(true) = cursor.advance() {}
    }
});
