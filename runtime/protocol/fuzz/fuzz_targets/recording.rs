//! Fuzzes recordings of ended jobs: any bytes are refused with words, or their rows are read. Begin with real
//! ones (`DIR/coordinator/history/job_*.jsonl.gz`), as they are and decompressed: the bytes are read as a file and as
//! the text of a member with the right checksum.
#![no_main]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use napreduce_history::RecordedRows;

fuzz_target!(|bytes: &[u8]| {
    let mut member = GzEncoder::new(Vec::new(), Compression::fast());
    member.write_all(bytes).expect("into memory");
    for recording in [bytes.to_vec(), member.finish().expect("into memory")] {
        let _ = RecordedRows::parse(&recording);
    }
});
