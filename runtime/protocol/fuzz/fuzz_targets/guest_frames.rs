//! Fuzzes the frames that an engine sends to the reduce of a guest.
//! What must hold is in `napreduce_guests::fuzzing`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| napreduce_guests::fuzzing::read_guest_frames(bytes));
