//! Fuzzes the messages of the coordinator to a worker. `napreduce_protocol::fuzzing` has the checks.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| napreduce_protocol::fuzzing::run("to_worker", bytes));
