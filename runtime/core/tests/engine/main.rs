//! The engine as its driver sees it: scenarios in a small text vocabulary, and random events by seed.
//!
//! Owns the list of behaviours, one file each. The vocabulary is in `script` (what is written) and `names` (how things
//! are called there).

mod actions;
mod choices;
mod commit;
mod containment;
mod conversion;
mod coverage;
mod determinism;
mod drains;
mod explain;
mod failures;
mod fair;
mod fault_places;
mod fcs;
mod fifo;
mod hfsp;
mod isolation;
mod jobs;
mod keeping;
mod ledger;
mod limits;
mod lost_outputs;
mod names;
mod natjam;
mod operators;
mod policies;
mod policy;
mod preemption;
mod races;
mod random;
mod reservations;
mod saved_progress;
mod script;
mod slowstart;
mod snapshots;
mod speculation;
mod trigger;
mod unreachable;
mod workers;
mod world;
