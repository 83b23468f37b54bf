//! Fuzzes what either end of a connection may send before it is known, and in place of records.
//! What must hold is in `napreduce_protocol::fuzzing`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| napreduce_protocol::fuzzing::run("handshake", bytes));
