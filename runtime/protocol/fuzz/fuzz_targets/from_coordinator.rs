//! Fuzzes what the coordinator may answer a client.
//! What must hold is in `napreduce_protocol::fuzzing`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| napreduce_protocol::fuzzing::run("from_coordinator", bytes));
