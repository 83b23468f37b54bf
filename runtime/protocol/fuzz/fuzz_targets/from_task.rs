//! Fuzzes what a task process may send to its worker.
//! What must hold is in `napreduce_protocol::fuzzing`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| napreduce_protocol::fuzzing::run("from_task", bytes));
