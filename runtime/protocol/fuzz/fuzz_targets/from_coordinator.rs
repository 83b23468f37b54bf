//! Fuzzes the coordinator's answers to a client. `napreduce_protocol::fuzzing` has the checks.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| napreduce_protocol::fuzzing::run("from_coordinator", bytes));
