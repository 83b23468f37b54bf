//! Fuzzes the answers of a worker's data server to a fetcher. `napreduce_protocol::fuzzing` has the checks.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| napreduce_protocol::fuzzing::run("from_data_server", bytes));
