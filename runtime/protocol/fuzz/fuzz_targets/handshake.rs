//! Fuzzes the bytes that either end of a connection sends before authentication, and invalid records.
//! `napreduce_cluster::transport::fuzzing` has the checks.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| napreduce_cluster::transport::fuzzing::shake_hands(bytes));
