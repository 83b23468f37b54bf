//! Fuzzes recordings of ended jobs: every input is read or rejected with an error. Start with real recordings
//! (`DIR/coordinator/history/job_*.jsonl.gz`), compressed and decompressed: the input is read as a file and as the
//! text of a member with the correct checksum.
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
