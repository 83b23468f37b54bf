//! Fuzzes what a fetcher may send to a worker's data server.
//! What must hold is in `napreduce_protocol::fuzzing`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| napreduce_protocol::fuzzing::run("to_data_server", bytes));
