//! Fuzzes what a worker's data server may answer a fetcher.
//! What must hold is in `napreduce_protocol::fuzzing`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| napreduce_protocol::fuzzing::run("from_data_server", bytes));
