//! The files of ended jobs: what is written is read, and what is damaged is said.
//!
//! Owns tests through what the crate shows, one behaviour a file.

mod bounds;
mod crashes;
mod damage;
mod folder;
mod former;
mod heads;
mod index;
mod ledger;
mod round_trip;
mod samples;
mod size;
mod timeline;
