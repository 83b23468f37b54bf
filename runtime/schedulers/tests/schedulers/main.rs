//! The policies in scenarios and under random events, and the table of policies.

#![allow(clippy::unwrap_used)] // every function here is part of a test

mod capacity;
mod changes;
mod delay;
mod fair;
mod fcs;
mod fifo;
mod hfsp;
mod natjam;
mod pages;
mod racks;
mod random_events;
mod table;
mod trigger;
