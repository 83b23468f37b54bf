//! Fuzzes what either end of a connection may send before it is known, and in place of records.
//! What must hold is in `napreduce_cluster::transport::fuzzing`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| napreduce_cluster::transport::fuzzing::shake_hands(bytes));
