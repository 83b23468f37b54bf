//! `nap` as people and programs call it.

mod cluster;
mod hadoop;
