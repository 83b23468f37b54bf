//! Tests of `nap` as users and programs call it.

mod cluster;
