//! Fuzzes the frames that an engine sends to the reduce of a guest. `napreduce_guests::fuzzing` has the checks.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| napreduce_guests::fuzzing::read_guest_frames(bytes));
