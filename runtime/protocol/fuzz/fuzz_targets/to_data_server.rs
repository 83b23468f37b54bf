//! Fuzzes the requests of a fetcher to a worker's data server. `napreduce_protocol::fuzzing` has the checks.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| napreduce_protocol::fuzzing::run("to_data_server", bytes));
